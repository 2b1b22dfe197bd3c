"""A real small LLM behind the OpenAI protocol, as the demo has it; its weights are fetched."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gta_bench.demo.local_model import MODEL, SMOLLM2, serve_model
from gta_bench.weights import fetch

CACHE = Path.home() / ".cache" / "gta-bench" / "weights"
__all__ = ["MODEL", "llm_server"]

# The template of the weights with a place for tools: the preflight of a run refuses a server that
# leaves them out.
TEMPLATE = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n{% endif %}"
    "{% for tool in tools %}{{ tool.function.name }}: {{ tool.function.description }}\n{% endfor %}"
    "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@contextmanager
def llm_server(threads: int = 2, longest_reply: int = -1) -> Iterator[str]:
    """The server's base address."""
    settings = f"params.n_predict = {longest_reply}\nparams.chat_template = {TEMPLATE!r}\n"
    with serve_model(_quick_weights(), threads=threads, settings=settings) as url:
        yield url


def _quick_weights() -> Path:
    """The same weights as Q8_0, which processors read twice as fast as Q4_1."""
    weights = fetch(SMOLLM2, CACHE, lambda _: None) / SMOLLM2.files[0].name
    quick = weights.with_name("quick.gguf")
    if not quick.exists():
        # Several test processes may make it at once; each puts a whole file there.
        handle, made = tempfile.mkstemp(dir=weights.parent)
        os.close(handle)
        _requantize(weights, Path(made))
        Path(made).rename(quick)
    return quick


def _requantize(weights: Path, made: Path) -> None:
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
    from gguf.quants import dequantize, quantize

    eight, plain = GGMLQuantizationType.Q8_0, GGMLQuantizationType.F32
    reader = GGUFReader(weights)
    writer = GGUFWriter(made, reader.fields["general.architecture"].contents())
    written = ("general.architecture", "general.file_type")
    for name, field in reader.fields.items():
        if name not in written and not name.startswith("GGUF."):
            kind = field.types[0]
            within = field.types[-1] if kind == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub_type=within)
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    for tensor in reader.tensors:
        if tensor.tensor_type == plain:
            writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=plain)
        else:
            values = dequantize(tensor.data, tensor.tensor_type)
            writer.add_tensor(tensor.name, quantize(values, eight), raw_dtype=eight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
