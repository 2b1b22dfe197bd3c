"""Evidence on disk, stored once for each content, file suffix and renderer."""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from pydantic import ValidationError

from gta_bench.records.evidence import FileEvidence
from gta_bench.redaction import current_redactor
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.runs.store import StorePath, sort_by_name, write_bytes_atomically

EVIDENCE = "evidence"  # its folder in a run
_FILES = "files"
_LATE = "late"
_DIGEST = re.compile(rb'"digest": ?"([0-9a-f]{64})"')


class EvidenceStore:
    """A folder with one JSON file for each shown file, and their pictures.

    Evidence is late if a program ran out of time for it. Late evidence counts for the process that
    made it and for readers; the next process makes it again.
    """

    def __init__(self, folder: StorePath) -> None:
        self.folder = folder
        self._late: dict[str, FileEvidence] = {}
        self.pictures = ArtefactStore(folder / "pictures")
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def picture(self, digest: str) -> bytes:
        """Return the bytes of a picture, after checking its digest."""
        return self.pictures.read(digest)

    def find(self, key: str) -> FileEvidence | None:
        """Return stored evidence if it is complete with its pictures, else None."""
        return self._late.get(key) or self._read(self._file(_FILES, key))

    def _read(self, file: StorePath) -> FileEvidence | None:
        try:
            found = FileEvidence.model_validate_json(file.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None
        complete = all(self.pictures.path(one.digest).is_file() for one in found.pictures)
        return found if complete else None

    def files(self) -> Iterator[FileEvidence]:
        """Yield all readable evidence, for readers."""
        for kept in (_LATE, _FILES):  # the last one of a file counts: evidence made in time
            for file in sort_by_name(self.folder.glob(f"{kept}/*/*.json")):
                found = self._read(file)
                if found is not None:
                    yield found

    def index(self) -> dict[str, StorePath]:
        """Return where the evidence of each file is, by the file's digest, without reading it."""
        found: dict[str, StorePath] = {}
        for kept in (_LATE, _FILES):
            for file in sort_by_name(self.folder.glob(f"{kept}/*/*.json")):
                match = _DIGEST.search(file.read_bytes())
                if match is not None:
                    found[match[1].decode()] = file
        return found

    def read(self, file: StorePath) -> FileEvidence | None:
        """Return the evidence in a file of the index, if it is complete with its pictures."""
        return self._read(file)

    def keep(self, key: str, evidence: FileEvidence, *, late: bool = False) -> None:
        """Store a file's evidence, after its pictures."""
        if late:
            self._late[key] = evidence
        file = self._file(_LATE if late else _FILES, key)
        write_bytes_atomically(file, current_redactor().json(evidence.model_dump_json().encode()))

    @asynccontextmanager
    async def holding(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Lock these keys; always in the same order, so that no two tasks wait for each other."""
        locks = [self._locks.setdefault(key, asyncio.Lock()) for key in sorted(set(keys))]
        async with AsyncExitStack() as stack:
            for lock in locks:
                await stack.enter_async_context(lock)
            yield

    def _file(self, kept: str, key: str) -> StorePath:
        return self.folder / kept / key[:2] / f"{key}.json"


def evidence_key(*parts: object) -> str:
    """Return one key for everything that a file's evidence depends on."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
