"""The demo: seven small bundled tasks, a scripted system and judge, and a small real model."""

from pathlib import Path

ATOMIC = Path(__file__).parent / "data" / "atomic"
WORKFLOW = Path(__file__).parent / "data" / "workflow"
