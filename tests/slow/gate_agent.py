"""An agent for tests of the gate: it knows all answers, and its version B gives up on some tasks.

It gets the folder of answers, the number of tasks that it breaks, and the seconds that it takes. A
task is recognized by its input files, as nothing else tells one task from another.
"""

import hashlib
import shutil
import sys
import time
from pathlib import Path


def recognize(inputs: Path) -> str:
    """Return the same text for the same input files."""
    digest = hashlib.sha256()
    for file in sorted(path for path in inputs.rglob("*") if path.is_file()):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def main(answers: Path, broken: int, seconds: float, workspace: Path) -> None:
    """Deliver the answer of the task in the workspace."""
    time.sleep(seconds)
    names = sorted(path.name for path in answers.iterdir())
    own = recognize(workspace / "inputs")
    if own in names[:broken]:
        print("I cannot do that.")
        return
    shutil.copytree(answers / own, workspace / "outputs", dirs_exist_ok=True)
    final = workspace / "outputs" / "final.txt"
    print(final.read_text(encoding="utf-8"))
    final.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
