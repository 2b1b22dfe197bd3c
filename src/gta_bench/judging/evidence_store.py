"""Evidence kept on disk: made once per content, claimed name and renderer, and never by halves."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from pydantic import ValidationError

from gta_bench.records.evidence import FileEvidence
from gta_bench.redaction import current_redactor
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.runs.store import StorePath, sorted_by_name, write_whole

EVIDENCE = "evidence"  # its folder in a run
_FILES = "files"
_LATE = "late"


class EvidenceStore:
    """A folder with one JSON file per shown file, and the pictures beside them.

    What a program had too little time for is good for whoever opened this store and for readers;
    the next one to open it makes it again.
    """

    def __init__(self, folder: StorePath) -> None:
        self.folder = folder
        self._late: dict[str, FileEvidence] = {}
        self.pictures = ArtefactStore(folder / "pictures")
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def picture(self, digest: str) -> bytes:
        """The bytes of a picture, checked."""
        return self.pictures.read(digest)

    def find(self, key: str) -> FileEvidence | None:
        """What was made before, if all of it is still here."""
        return self._late.get(key) or self._read(self._file(_FILES, key))

    def _read(self, file: StorePath) -> FileEvidence | None:
        try:
            found = FileEvidence.model_validate_json(file.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None
        whole = all(self.pictures.path(picture.digest).is_file() for picture in found.pictures)
        return found if whole else None

    def files(self) -> Iterator[FileEvidence]:
        """Everything that was made, for readers; what cannot be read is left out."""
        for kept in (_LATE, _FILES):  # what was made in time counts
            for file in sorted_by_name(self.folder.glob(f"{kept}/*/*.json")):
                found = self._read(file)
                if found is not None:
                    yield found

    def keep(self, key: str, evidence: FileEvidence, *, late: bool = False) -> None:
        """Keep a file's evidence; its pictures are kept already."""
        if late:
            self._late[key] = evidence
        file = self._file(_LATE if late else _FILES, key)
        write_whole(file, current_redactor().json(evidence.model_dump_json().encode()))

    @asynccontextmanager
    async def holding(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Alone at work on these; always taken in one order, so that nobody waits for ever."""
        locks = [self._locks.setdefault(key, asyncio.Lock()) for key in sorted(set(keys))]
        async with AsyncExitStack() as stack:
            for lock in locks:
                await stack.enter_async_context(lock)
            yield

    def _file(self, kept: str, key: str) -> StorePath:
        return self.folder / kept / key[:2] / f"{key}.json"


def evidence_key(*parts: object) -> str:
    """One name for everything that a file's evidence depends on."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
