"""Find phrasings that plain American English does not use; exit code 1 if there are any.

Spelling is codespell's work (pyproject.toml). This list holds what it cannot: words that are right
but read as translated. Add a phrase when a reader stumbles over it.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = (
    "src",
    "docs",
    "scripts",
    "examples",
    "plugins",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)
SUFFIXES = (".py", ".md", ".html", ".js", ".toml")
# Old texts stay as they were published, and this list names what it looks for.
LEFT_OUT = (
    "docs/decisions/",
    "scripts/check_words.py",
    "src/gta_bench/agents/prompts/",
)
STORED = "# stored name"  # at the end of a line: files of earlier versions have it
INSTEAD = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\btold\b(?!( them)? apart)": "reported, shown or warned",
    r"\b_?told_|_told\b": "a verb",
    r"\bheld\b(?![ -]out)": "kept, locked or limited",
    r"\bheld_(?!out)|_held\b": "a verb",
    r"\banew\b": "again",
    r"\blaid before\b": "shown to",
    r"\bto be looked at\b": "open",
    r"\bwhat holds\b": "what applies",
    r"\bunless given\b": "default:",
    r"\b(of|by|for|to) whom\b": "who",
    r"\bmade_whole\b|\bfull_words\b": "a verb",
}


def files() -> Iterator[Path]:
    for place in PLACES:
        path = ROOT / place
        found = path.rglob("*") if path.is_dir() else [path]
        for file in sorted(found):
            name = file.relative_to(ROOT).as_posix()
            if file.suffix in SUFFIXES and not name.startswith(LEFT_OUT):
                yield file


def main() -> int:
    found = 0
    for path in files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, instead in () if line.endswith(STORED) else INSTEAD.items():
                if match := re.search(pattern, line, re.IGNORECASE):
                    found += 1
                    where = path.relative_to(ROOT).as_posix()
                    print(f"{where}:{number}: {match.group()!r}; write {instead!r} instead")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
