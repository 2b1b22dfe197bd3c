"""all-mpnet-base-v2 in numpy: the published similarity model without torch.

It reads the model's own weights and computes in the same precision. Embeddings differ from those
of sentence-transformers by less than 1e-6 (docs/decisions/0020-installation.md).
"""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer

_Array = npt.NDArray[np.float32]

# Longer texts are truncated, as sentence-transformers does with this model's settings.
LONGEST = 384
# Position ids start after the one reserved for padding.
FIRST_POSITION = 2
NORM_EPSILON = np.float32(1e-5)
FARTHEST = 128


class Encoder:
    """MPNet with mean pooling, with the weights and tokenizer from a folder."""

    def __init__(self, folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        self._tensors: Mapping[str, _Array] = tensors
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LONGEST)
        self._bias = tensors["encoder.relative_attention_bias.weight"]
        layers = {name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")}
        self._layers = len(layers)

    def encode(self, text: str) -> _Array:
        """Return the normalized embedding of a text."""
        ids = self._tokenizer.encode(text).ids
        words = self._tensors["embeddings.word_embeddings.weight"][ids]
        positions = np.arange(len(ids)) + FIRST_POSITION
        states = words + self._tensors["embeddings.position_embeddings.weight"][positions]
        states = self._norm("embeddings.LayerNorm", states)
        bias = self._bias[distance_buckets(len(ids), len(self._bias))].transpose(2, 0, 1)
        for number in range(self._layers):
            states = self._layer(f"encoder.layer.{number}", states, bias)
        pooled: _Array = states.mean(axis=0)
        embedding: _Array = pooled / np.float32(max(float(np.linalg.norm(pooled)), 1e-12))
        return embedding

    def _layer(self, name: str, states: _Array, bias: _Array) -> _Array:
        attended = self._attend(f"{name}.attention.attn", states, bias)
        states = self._norm(f"{name}.attention.LayerNorm", states + attended)
        inner = gelu(self._dense(f"{name}.intermediate.dense", states))
        outer = self._dense(f"{name}.output.dense", inner)
        return self._norm(f"{name}.output.LayerNorm", states + outer)

    def _attend(self, name: str, states: _Array, bias: _Array) -> _Array:
        heads = partial(self._heads, states=states, count=len(bias))
        queries, keys, values = (heads(f"{name}.{part}") for part in "qkv")
        scale = np.float32(1 / math.sqrt(queries.shape[-1]))
        scores = queries @ keys.transpose(0, 2, 1) * scale + bias
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ values).transpose(1, 0, 2).reshape(states.shape)
        return self._dense(f"{name}.o", mixed)

    def _heads(self, name: str, states: _Array, count: int) -> _Array:
        """Split projected states by attention head: head, position, value."""
        projected = self._dense(name, states)
        return projected.reshape(len(states), count, -1).transpose(1, 0, 2)

    def _dense(self, name: str, states: _Array) -> _Array:
        return states @ self._tensors[f"{name}.weight"].T + self._tensors[f"{name}.bias"]

    def _norm(self, name: str, states: _Array) -> _Array:
        centered = states - states.mean(axis=-1, keepdims=True)
        variance = (centered * centered).mean(axis=-1, keepdims=True)
        scaled = centered / np.sqrt(variance + NORM_EPSILON)
        normed: _Array = scaled * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]
        return normed


def distance_buckets(length: int, buckets: int) -> npt.NDArray[np.int64]:
    """Return the relative-position bucket of every pair of positions.

    Near distances have a bucket each, farther ones share logarithmic buckets. Half of the buckets
    are for earlier positions, half for later ones.
    """
    positions = np.arange(length)
    ahead = positions[None, :] - positions[:, None]
    distance, half = np.abs(ahead), buckets // 2
    near = half // 2
    # Single precision as in the original: doubles would move some distances to another bucket.
    ratio = np.maximum(distance, 1).astype(np.float32) / np.float32(near)
    steps = np.log(ratio) / np.float32(math.log(FARTHEST / near)) * np.float32(half - near)
    far = np.minimum(near + steps.astype(np.int64), half - 1)
    found: npt.NDArray[np.int64] = np.where(distance < near, distance, far)
    return found + half * (ahead > 0)


def gelu(values: _Array) -> _Array:
    """Apply the Gaussian error linear unit.

    numpy has no error function; this approximation is off by at most 1.5e-7 (Abramowitz and
    Stegun, 7.1.26).
    """
    scaled = values * np.float32(math.sqrt(0.5))
    size = np.abs(scaled)
    term = 1 / (1 + np.float32(0.3275911) * size)
    sum_ = np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        sum_ = sum_ * term + np.float32(factor)
    error = np.copysign(1 - sum_ * term * np.exp(-size * size), scaled)
    shaped: _Array = values * np.float32(0.5) * (1 + error)
    return shaped
