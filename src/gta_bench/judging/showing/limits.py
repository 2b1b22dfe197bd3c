"""How much of a file a judge is shown, and how much making it may cost."""

from gta_bench.records.base import Record


class EvidenceLimits(Record):
    """Bounds on one file's evidence; everything beyond them is named in `cut`.

    `seconds` bounds one program at work on the file, with its pages or its scripts. Memory is
    bounded by the jail's limits of each program.
    """

    pages: int = 20
    frames: int = 8
    characters: int = 40_000
    sheets: int = 30
    rows: int = 200
    columns: int = 50
    formulas: int = 200
    members: int = 200
    opened: int = 20
    picture_side: int = 1568
    sound_seconds: float = 600.0
    seconds: float = 60.0
