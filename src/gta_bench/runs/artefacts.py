"""Files kept once by their content, whatever names they have."""

import hashlib

from gta_bench.errors import RunError
from gta_bench.records.files import Deliverable
from gta_bench.redaction import current_redactor
from gta_bench.runs.store import StorePath, write_whole

ARTEFACTS = "artefacts"


class ArtefactStore:
    """A folder of files named by their SHA-256; a file is there whole or not at all."""

    def __init__(self, folder: StorePath) -> None:
        self.folder = folder

    def keep(self, data: bytes) -> str:
        """Keep the bytes without secrets, and return the digest of what is kept."""
        return self._write(current_redactor().data(data))

    def _write(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        file = self.path(digest)
        if not file.exists():
            write_whole(file, data)
        return digest

    def keep_file(self, path: str, data: bytes) -> Deliverable:
        """Keep a file, and return its record; secrets are taken out of its name too."""
        clean = current_redactor().data(data)
        name = current_redactor().filename(path)
        return Deliverable(path=name, digest=self._write(clean), size=len(clean))

    def read(self, digest: str) -> bytes:
        """The bytes of a digest, checked."""
        file = self.path(digest)
        try:
            data = file.read_bytes()
        except FileNotFoundError as exc:
            raise RunError(f"{self.folder} lacks the file {digest}.") from exc
        if hashlib.sha256(data).hexdigest() != digest:
            raise RunError(f"{file} was changed: its content is not that of its name.")
        return data

    def path(self, digest: str) -> StorePath:
        """Where the bytes of a digest lie, or would."""
        return self.folder / digest[:2] / digest
