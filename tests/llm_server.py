"""A real small LLM behind the OpenAI protocol: SmolLM2 on llama.cpp's server, a process."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket

from tests.weights import SMOLLM2, fetch

MODEL = "smollm2-135m"
PROGRAM = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = sys.argv[1], {sys.argv[2]}
params.n_ctx, params.n_parallel, params.use_jinja = 8192, 1, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
# The smallest of models repeats itself until its reply is cut off, unless it is made not to.
params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.2, 256
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[3])
server = xllamacpp.Server(params)
while True:
    time.sleep(3600)
"""


@contextmanager
def llm_server() -> Iterator[str]:
    """The server's base address; the process is ended by its own id."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", PROGRAM, str(fetch(SMOLLM2)), MODEL, str(port)]
    # Its threads wait for each other at every step. Awake, they would take the cores from
    # whoever they wait for: where others work too, a reply then takes minutes.
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "the LLM server ended"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise TimeoutError(f"{url} did not answer")
