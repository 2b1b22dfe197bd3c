"""A new dataset: a folder of GTA-Atomic's layout inside the package."""

from pathlib import Path


def folder() -> Path:
    """Where its dataset.json and toolmeta.json lie."""
    return Path(__file__).parent / "data"
