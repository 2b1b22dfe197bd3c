"""Files stored once by content, whatever their names."""

import hashlib

from gta_bench.errors import RunError
from gta_bench.records.files import Deliverable
from gta_bench.redaction import current_redactor
from gta_bench.runs.store import StorePath, write_bytes_atomically

ARTEFACTS = "artefacts"


class ArtefactStore:
    """A folder of files named by their SHA-256, written atomically."""

    def __init__(self, folder: StorePath) -> None:
        self.folder = folder

    def keep(self, data: bytes) -> str:
        """Store the bytes without secrets, and return the digest of what was stored."""
        return self._write(current_redactor().data(data))

    def _write(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        file = self.path(digest)
        if not file.exists():
            write_bytes_atomically(file, data)
        return digest

    def keep_file(self, path: str, data: bytes) -> Deliverable:
        """Store a file, and return its record; secrets are removed from its name, too."""
        clean = current_redactor().data(data)
        name = current_redactor().filename(path)
        return Deliverable(path=name, digest=self._write(clean), size=len(clean))

    def read(self, digest: str) -> bytes:
        """Return the bytes of a digest; raises RunError if they are missing or were changed."""
        file = self.path(digest)
        try:
            data = file.read_bytes()
        except FileNotFoundError as exc:
            raise RunError(
                f"{self.folder} has no file {digest}. Restore it from a copy of the run."
            ) from exc
        if hashlib.sha256(data).hexdigest() != digest:
            raise RunError(
                f"{file} was changed: its content does not match its name. Restore it from a copy."
            )
        return data

    def path(self, digest: str) -> StorePath:
        """Return the path of a digest, whether or not it is stored."""
        return self.folder / digest[:2] / digest
