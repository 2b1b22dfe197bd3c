"""Make the small random MPNet of this folder, and what sentence-transformers computes with it.

By hand, where the extra `similarity` is installed: `python tests/similarity/tiny_mpnet/make.py`.
With the folder of all-mpnet-base-v2 as an argument, its embeddings go to published.json too.
"""

import json
import sys
import tempfile
from pathlib import Path

import sentence_transformers
import torch
from sentence_transformers import models
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import (
    MPNetConfig,
    MPNetModel,
    PreTrainedTokenizerFast,
)
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

FOLDER = Path(__file__).parent
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
PIECES = [*"abcdefghijklmnopqrstuvwxyz0123456789.,?", "the", "cat", "dog", "##s", "cost", "beer"]
TEXTS = (
    "",
    "The cat costs 12.",
    "Dogs, beer, and what is not known: 漢字.",
    "cat " * 40,
    "the dog costs beer, " * 120,
)
PUBLISHED = (
    "",
    "12",
    "The beer costs 12 dollars and 50 cents.",
    "Yes, the woman in the red coat is taller than the man beside her.",
    "['a cat', 'a motorcycle', 'two cups of coffee']",
    "Schnee fällt; 雪が降る。 🙂 naïve café",
    "First the flour is sifted, then sugar and butter are beaten until pale. " * 60,
)


def main() -> None:
    """Write model.safetensors, tokenizer.json and expected.json."""
    torch.manual_seed(1)
    tokenizer = make_tokenizer()
    tokenizer.save(str(FOLDER / "tokenizer.json"))
    model = make_model(tokenizer.get_vocab_size())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="<pad>", model_max_length=512
        ).save_pretrained(folder)
        (FOLDER / "model.safetensors").write_bytes(
            (Path(folder) / "model.safetensors").read_bytes()
        )
        transformer = models.Transformer(folder, max_seq_length=384)
        pooling = models.Pooling(model.config.hidden_size, pooling_mode="mean")
        encoder = sentence_transformers.SentenceTransformer(
            modules=[transformer, pooling, models.Normalize()], device="cpu"
        )
        embeddings = {text: encoder.encode(text).tolist() for text in TEXTS}
    ahead = torch.arange(384)
    given = [number / 4 for number in range(-24, 25)]
    expected = {
        "made_by": {
            "sentence-transformers": sentence_transformers.__version__,
            "torch": torch.__version__,
        },
        "embeddings": embeddings,
        "buckets_after": MPNetEncoder.relative_position_bucket(ahead).tolist(),
        "buckets_before": MPNetEncoder.relative_position_bucket(-ahead).tolist(),
        "gelu": dict(zip(given, torch.nn.GELU()(torch.tensor(given)).tolist(), strict=True)),
    }
    write("expected.json", expected)
    for folder in sys.argv[1:]:
        encoder = sentence_transformers.SentenceTransformer(folder, device="cpu")
        found = {text: encoder.encode(text).tolist() for text in PUBLISHED}
        write("published.json", {"made_by": expected["made_by"], "embeddings": found})


def write(name: str, content: object) -> None:
    """JSON with seven digits, which is what single precision has."""
    rounded = json.loads(json.dumps(content), parse_float=lambda text: float(f"{float(text):.7g}"))
    (FOLDER / name).write_text(json.dumps(rounded) + "\n", encoding="utf-8")


def make_tokenizer() -> Tokenizer:
    """Pieces of words, in the way of the real one."""
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *PIECES])}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def make_model(words: int) -> MPNetModel:
    """All parameters random, also those that begin as 0 or 1."""
    config = MPNetConfig(
        vocab_size=words,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=514,
        layer_norm_eps=1e-5,
    )
    model = MPNetModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.4)
    return model


if __name__ == "__main__":
    main()
