"""Find phrasings that plain American English does not use; exit code 1 if there are any.

Spelling is codespell's work (pyproject.toml). This list holds what it cannot: words that are right
but read as translated. Add a phrase when a reader stumbles over it.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
READ = ("*.py", "*.md", "*.html", "*.js", "*.toml")
# Old texts stay as they were published, and this list names what it looks for.
LEFT_OUT = (
    "CHANGELOG.md",
    "docs/decisions/",
    "scripts/check_words.py",
    "src/gta_bench/agents/prompts/",
    "tests/",
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
PATTERN = re.compile("|".join(f"(?P<p{n}>{one})" for n, one in enumerate(INSTEAD)), re.IGNORECASE)


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *READ], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if not name.startswith(LEFT_OUT)]


def main() -> int:
    found = 0
    for path in filter(Path.is_file, tracked()):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in () if line.endswith(STORED) else PATTERN.finditer(line):
                found += 1
                instead = list(INSTEAD.values())[int(str(match.lastgroup)[1:])]
                where = path.relative_to(ROOT).as_posix()
                print(f"{where}:{number}: {match.group()!r}; write {instead!r} instead")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
