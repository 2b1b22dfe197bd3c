"""What DrawBox and AddText share: their backend, and arguments of the Workflow edition."""

from gta_bench.tools.contract import Availability, Available
from gta_bench.tools.fonts import text_face
from gta_bench.tools.packages import find_missing, name_and_version

PACKAGE = "pillow"
OUTPUT_DIR = "Accepted and not used: the image is always saved among the task's outputs."
FILENAME = "Optional filename of the edited image."


def check() -> Availability:
    """Pillow is all they need; without a CJK font they say so."""
    return find_missing("PIL") or Available(backend())


def backend() -> str:
    """Pillow's version and the font that is used."""
    face = text_face()
    return f"{name_and_version(PACKAGE)}, {face.name}" + ("" if face.cjk else " (no CJK font here)")
