"""The demo: seven small tasks of our own, real offline tools, scripts and a small real model."""

from pathlib import Path

ATOMIC = Path(__file__).parent / "data" / "atomic"
WORKFLOW = Path(__file__).parent / "data" / "workflow"
