"""Environments by plain options, which every RL framework can pass on."""

import asyncio
import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import Field, ValidationError, field_validator

from gta_bench.confine.files import remove_tree
from gta_bench.datasets.atomic import ATOMIC_FILES
from gta_bench.datasets.installed import load_any
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.workflow import is_workflow
from gta_bench.errors import UsageError
from gta_bench.packages import require_packages
from gta_bench.records.base import Record
from gta_bench.records.run import DEFAULT_TURNS
from gta_bench.rl.environment import Environment, Sources, TaskSource, replay_tape
from gta_bench.rl.rewards import Kind, Rewards, outcome_rewards, step_rewards, tool_use_rewards
from gta_bench.serving.choice import TOKEN_VARIABLE, parse_tools
from gta_bench.serving.client import connect
from gta_bench.settings import read_key, read_settings
from gta_bench.similarity.catalog import SMALL, load_similarity
from gta_bench.tape.storage import Tape
from gta_bench.tools.contract import Equipment
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from gta_bench.forge.draft import Namespace, TaskLevel

_REWARDS: Mapping[Kind, Any] = {
    "step": step_rewards,
    "outcome": outcome_rewards,
    "tool-use": tool_use_rewards,
}
_EXAMPLE = '{"families": ["chart"]}'
# Options that only families, or only GTA-Atomic, have a use for.
_OF_FAMILIES = ("forge_seed", "level", "namespace", "key_file")
_OF_ATOMIC = ("reward", "similarity")


class EpisodeOptions(Record):
    """What to train on, and the tools; either `families` or `data`.

    `families` of `gta forge` are an endless dataset, made by `forge_seed`, `level`, `namespace` and
    for private tasks `key_file`. `data` is a folder of GTA-Atomic, rewarded by `reward` and
    `similarity`, or of tasks whose leaves all have checks. Tools are those of this machine, of a
    `tape`, or of a `server`. Episodes have at most `max_steps` actions, in folders below `folder`.

    >>> read_options('{"families": ["chart"]}').namespace
    'train'
    """

    families: tuple[str, ...] = ()
    forge_seed: str = "0"
    level: int = 1
    namespace: str = "train"
    key_file: str | None = None
    data: str | None = None
    reward: Kind = "outcome"
    similarity: str = SMALL
    tape: str | None = None
    server: str | None = None
    max_steps: int = Field(default=DEFAULT_TURNS, ge=1)
    folder: str | None = None

    @field_validator("families", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Split a text at commas: some command lines have no lists."""
        return tuple(value.split(",")) if isinstance(value, str) else value


def read_options(given: str | Mapping[str, Any]) -> EpisodeOptions:
    """Read options from JSON text, or from an object."""
    try:
        parsed = json.loads(given) if isinstance(given, str) else dict(given)
    except ValueError as exc:
        raise UsageError(f"The options are not JSON ({exc}). Write them as '{_EXAMPLE}'.") from exc
    if not isinstance(parsed, dict):
        raise UsageError(f"The options must be a JSON object. Write them as '{_EXAMPLE}'.")
    try:
        return EpisodeOptions.model_validate(parsed)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"Option {where!r}: {first['msg']}. "
            f"Options are {', '.join(EpisodeOptions.model_fields)}."
        ) from exc


class EpisodeChoice(NamedTuple):
    """Which episode to start: the one of a seed, or one on a named task."""

    seed: int | None = None
    task: str | None = None


class EpisodeMaker:
    """Makes environments with the same options; the tools are opened with the first one.

    Wrong options raise UsageError at once. Use a maker in one event loop.
    """

    def __init__(self, options: EpisodeOptions) -> None:
        if bool(options.families) == (options.data is not None):
            raise UsageError(
                "Set either `families`, such as ['chart'], or `data`, the folder of a dataset."
            )
        if options.tape is not None and options.server is not None:
            raise UsageError("`tape` and `server` both name the tools: remove one of them.")
        self._options = options
        self._server = None if options.server is None else parse_tools(options.server)
        self._dataset = _load_dataset(options)
        self._tape = None if options.tape is None else Tape.open(Path(options.tape))
        self._folder = _make_folder(options.folder)
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._opened: tuple[Sources, Rewards] | None = None

    @property
    def endless(self) -> bool:
        """Whether there is no last task."""
        return not isinstance(self._dataset, AtomicDataset | WorkflowDataset)

    def list_choices(self, count: int | None = None, first: int = 0) -> Iterator[EpisodeChoice]:
        """Yield `count` seeds from `first` on.

        Without a count, yield every task of a dataset, or seeds without end for families.
        """
        if count is None and isinstance(self._dataset, AtomicDataset | WorkflowDataset):
            yield from (EpisodeChoice(task=name) for name in self._dataset.tasks)
        else:
            seeds = itertools.count(first) if count is None else range(first, first + count)
            yield from (EpisodeChoice(seed=seed) for seed in seeds)

    async def make(self) -> Environment:
        """Return a new environment, for one episode at a time."""
        async with self._lock:
            if self._opened is None:
                equipment = await self._stack.enter_async_context(
                    use_equipment(read_settings().settings)
                )
                self._opened = await self._open_sources(equipment), self._open_rewards(equipment)
        sources, rewards = self._opened
        return Environment(
            self._dataset,
            sources,
            rewards,
            folder=self._folder,
            max_steps=self._options.max_steps,
        )

    async def close(self) -> None:
        """Close the tools, and remove a temporary folder with all that is left in it."""
        self._opened = None
        await self._stack.aclose()
        if self._tape is not None:
            self._tape.close()
        if self._options.folder is None and self._folder.exists():
            remove_tree(self._folder)

    async def _open_sources(self, equipment: Equipment) -> Sources:
        if self._tape is not None:
            atomic = isinstance(self._dataset, AtomicDataset)
            return replay_tape(self._tape, "atomic" if atomic else "workflow")
        if self._server is not None:
            remote = await connect(self._server, read_key(TOKEN_VARIABLE))
            self._stack.push_async_callback(remote.aclose)
            return lambda task: remote
        toolbox = Toolbox(equipment)
        return lambda task: toolbox

    def _open_rewards(self, equipment: Equipment) -> Rewards:
        if isinstance(self._dataset, AtomicDataset):
            made: Rewards = _REWARDS[self._options.reward](self._options.similarity)
            return made
        from gta_bench.rl.forged import check_rewards

        return check_rewards(equipment)


def _load_dataset(options: EpisodeOptions) -> Dataset | TaskSource:
    if options.data is not None:
        _refuse_unused(options, _OF_FAMILIES, "`data`")
        dataset = _load_data(options.data)
        if isinstance(dataset, AtomicDataset):
            load_similarity(options.similarity)
        else:
            from gta_bench.rl.forged import require_checks

            _refuse_unused(options, _OF_ATOMIC, "tasks with checks")
            for task in dataset.tasks.values():
                require_checks(task)
        return dataset
    _refuse_unused(options, _OF_ATOMIC, "`families`")
    require_packages("training on families", "xlsxwriter", "docx", "pptx", "typst", extra="forge")
    from gta_bench.forge.catalog import find_families
    from gta_bench.forge.writing import Order
    from gta_bench.rl.forged import ForgedTasks

    # The order checks both.
    namespace, level = cast("Namespace", options.namespace), cast("TaskLevel", options.level)
    secret = _read_secret(options.key_file)
    order = Order(namespace, options.forge_seed, level, secret)
    return ForgedTasks(find_families(options.families), order)


def _load_data(data: str) -> Dataset:
    root = Path(data)
    if not is_workflow(root) and not any((root / file).is_file() for file in ATOMIC_FILES):
        raise UsageError(
            f"`data` {data!r} is neither a folder of GTA-Atomic, which `gta data fetch atomic` "
            "downloads, nor a folder of task folders."
        )
    return load_any(root)


def _refuse_unused(options: EpisodeOptions, names: Sequence[str], what: str) -> None:
    """Refuse options that `what` has no use for; a default says nothing."""
    fields = EpisodeOptions.model_fields
    for name in names:
        if getattr(options, name) != fields[name].default:
            raise UsageError(f"`{name}` has no effect on {what}: remove it.")


def _make_folder(given: str | None) -> Path:
    """Return a folder in which episodes can have theirs."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="gta-episodes-"))
    folder = Path(given)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder):
            return folder
    except OSError as exc:
        raise UsageError(
            f"`folder` {given!r} cannot be used: {exc.strerror}. Name a folder that can be written."
        ) from exc


def _read_secret(file: str | None) -> bytes:
    if file is None:
        return b""
    try:
        return Path(file).read_bytes().strip()
    except OSError as exc:
        raise UsageError(f"`key_file` {file!r} cannot be read: {exc.strerror}.") from exc
