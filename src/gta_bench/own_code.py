"""Functions that a user passes to the Python API: their names, digests and calls.

A digest covers everything that decides what a function does in this process: its source, defaults
and closure, and the functions, classes and values that it names, as long as they do not belong to
an installed package. Sources are compared without comments and layout (`ast.unparse`); docstrings
count. Values are compared as pickle would store them. Installed packages count by name, not by
version. What a function reads or looks up while it runs (files, environment, servers,
`globals()["name"]`) is not covered.

A function without a sound digest is refused: its source must be known and be the one that was
loaded, and all values that it names must be comparable.
"""

import __future__

import ast
import asyncio
import builtins
import copyreg
import dis
import functools
import inspect
import linecache
import logging
import pickle
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, TypeGuard, TypeVar, cast

from gta_bench.errors import UsageError

logger = logging.getLogger(__name__)

_Value = TypeVar("_Value")
AnyFunction = Callable[..., Any]

_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
_CONTAINERS: Final = (tuple, list, dict, set, frozenset)
_CACHED: Final = type(functools.cache(len))
_GLOBAL: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_ATTRIBUTE: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_FILLER: Final = frozenset({"CACHE", "EXTENDED_ARG"})
_FUTURE: Final = __future__.annotations.compiler_flag
_MISSING: Final = object()
_NOT_PICKLED: Final = (
    *(AttributeError, NotImplementedError, TypeError, ValueError),
    *(pickle.PicklingError, RecursionError),
)
_CODE: Final = (FunctionType, type, ModuleType, BuiltinFunctionType, _CACHED)
_UNBOUND: Final = (ModuleType, type(None))
# The files that IPython names for the cells of %%time and %%timeit.
_MAGIC: Final = ("<timed ", "<magic-timeit")
_SITE: Final = frozenset({"site-packages", "dist-packages"})


def name_function(function: AnyFunction) -> str:
    """Return a function's name, or that of its class."""
    if isinstance(function, partial):
        return name_function(function.func)
    return str(getattr(function, "__name__", type(function).__name__))


def digest_code(function: AnyFunction, role: str) -> dict[str, str]:
    """Return the digests of a function and of everything of the user's own that it uses, by name.

    `role` says in messages what the function is for: `agent`, `metric` or `judge`.
    """
    if not callable(function):
        kind = type(function).__name__
        raise UsageError(f"The {role} is a value of type {kind!r}: pass a function or a name.")
    reading = _Reading()
    try:
        found = reading.describe(function)
    except _NoDigest as exc:
        name = name_function(function)
        raise NoDigestError(f"The {role} {name!r} has no digest: {exc}.") from exc
    if not isinstance(function, FunctionType):
        reading.add_value(name_function(function), found)
    return dict(sorted(reading.parts.items()))


async def call_function(function: AnyFunction, *given: Any) -> Any:
    """Call a user's function: a coroutine here, anything else in a thread of its own.

    What would end the process, such as `sys.exit()`, is an error of the function.
    """
    try:
        return await _call(function, *given)
    except (Exception, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as exc:
        raise RuntimeError(f"{name_function(function)!r} raised {exc!r}") from exc


async def _call(function: AnyFunction, *given: Any) -> Any:
    called = getattr(function, "__call__", function)  # noqa: B004 - the method of an object
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return await function(*given)
    made = await run_in_thread(partial(function, *given))
    return await made if inspect.isawaitable(made) else made


async def run_in_thread(work: Callable[[], _Value]) -> _Value:
    """Run foreign code, which may take long, in its own thread.

    The event loop's pool has few threads, which our tools need, and a thread of it that never ends
    would keep the process from exiting.
    """
    context = copy_context()
    ended: Future[tuple[_Value | None, BaseException | None]] = Future()
    ended.set_running_or_notify_cancel()

    def run() -> None:
        try:
            ended.set_result((context.run(work), None))
        except BaseException as exc:
            logger.debug("a user's function raised", exc_info=True)
            ended.set_result((None, exc))

    threading.Thread(target=run, name="gta-own-code", daemon=True).start()
    value, raised = await asyncio.wrap_future(ended)
    if raised is not None:
        raise raised
    return cast(_Value, value)


class NoDigestError(UsageError):
    """A user's function has no sound digest."""


class _NoDigest(Exception):
    """Why something has no digest; `name` is what the function calls it."""

    name: str | None = None

    def __str__(self) -> str:
        problem = super().__str__()
        if self.name is None:
            return problem
        return f"it uses {self.name!r}, and {problem}"


class _Source(NamedTuple):
    """A text that was read: its syntax tree, and the keys of all code objects in it."""

    tree: ast.Module
    codes: frozenset[Any]


class _Reading:
    """Describes values as texts, and collects the digests of the user's own code on the way."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        # The names of parts, by the ids of functions and classes and by the places of values; the
        # objects are kept, so that no other one gets the same id.
        self._names: dict[int | str, str] = {}
        self._kept: list[object] = []
        # Where lambdas were found, by their ids.
        self._places: dict[int, str] = {}
        self._sources: dict[str, _Source] = {}

    def add_value(self, place: str, text: str) -> None:
        """Add a value by its description."""
        self._finish(self._reserve(place, place, "value"), text)

    def describe(self, value: Any, inside: tuple[Any, ...] = ()) -> str:
        """Return a text that is the same for the same value, in this process and in others.

        `inside` are the values that contain this one.
        """
        if type(value) in _PLAIN:
            return _describe_plain(value)
        if isinstance(value, FunctionType):
            return self._describe_function(value)
        if isinstance(value, type):
            return self._describe_class(value)
        if isinstance(value, ModuleType):
            return _describe_module(value)
        if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, _UNBOUND):
            return f"installed {value.__module__}:{value.__qualname__}"
        return self._describe_inside(value, inside)

    def _describe_inside(self, value: Any, inside: tuple[Any, ...]) -> str:
        """Describe a value that can contain itself."""
        for number, one in enumerate(inside):
            if value is one:
                return f"again {number}"
        if isinstance(value, MethodType):
            return f"method {self.describe(value.__func__)} {self.describe(value.__self__, inside)}"
        if isinstance(value, _CACHED):  # its cache cannot change what it returns
            return f"cached {self.describe(value.__wrapped__)}"
        if type(value) in _CONTAINERS:
            return self._describe_container(value, (*inside, value))
        return self._describe_object(value, (*inside, value))

    def _describe_container(self, value: Any, inside: tuple[Any, ...]) -> str:
        items = [
            self.describe(one, inside)
            for one in (chain.from_iterable(value.items()) if isinstance(value, dict) else value)
        ]
        if isinstance(value, set | frozenset):
            items.sort()
        return f"{type(value).__name__} ({'; '.join(items)})"

    def _describe_object(self, value: Any, inside: tuple[Any, ...]) -> str:
        """Describe an object by its class and by what pickle would store."""
        kind = type(value)
        try:
            reduce = copyreg.dispatch_table.get(kind)
            stored = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except _NOT_PICKLED as exc:
            raise _NoDigest(
                f"a {kind.__name__} cannot be compared ({exc}); create it inside the function"
            ) from exc
        if isinstance(stored, str):
            return f"{self.describe(kind)} {stored}"
        made, given, state, listed, mapped = (*stored, *[None] * 5)[:5]
        parts = [made, given, state, list(listed or ()), list(mapped or ())]
        texts = [self.describe(part, inside) for part in parts]
        return f"object {self.describe(kind)} ({'; '.join(texts)})"

    def _describe_function(self, function: FunctionType) -> str:
        # Not `__module__`, which decorators copy from what they wrap.
        module, name = str(function.__globals__.get("__name__")), function.__code__.co_qualname
        if id(function) in self._names:
            return f"own {self._names[id(function)]}"
        if _is_installed(module):
            known = f"installed {module}:{name}"
            is_named = _find_attribute(module, name) is function
            return known if is_named else f"{known} with {self._describe_bound(function)}"
        known = self._places.get(id(function), _qualify(module, _find_own_name(function)))
        part = self._reserve(known, function, "function")
        texts = [self._read_function(function.__code__), self._describe_bound(function)]
        texts += self._describe_globals(function, module)
        self._finish(part, "\n".join(texts))
        return f"own {part}"

    def _describe_bound(self, function: FunctionType) -> str:
        """Describe a function's defaults, closure and attributes."""
        code = function.__code__
        names, defaults = code.co_varnames[: code.co_argcount], function.__defaults__ or ()
        given = dict(zip(reversed(names), reversed(defaults), strict=False))
        given |= function.__kwdefaults__ or {}
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        closed = {name: _read_cell(cell) for name, cell in cells}
        own = {name: one for name, one in vars(function).items() if name != "__wrapped__"}
        return "; ".join(
            f"{name} {self._describe_used(name, one)}"
            for values in (given, closed, own)
            for name, one in values.items()
            if one is not _MISSING
        )

    def _describe_globals(self, function: FunctionType, module: str) -> Iterator[str]:
        """Describe the globals that a function names; values become parts of their own."""
        for path in sorted({*_find_names(function.__code__)}):
            name, value = _resolve(path, function.__globals__)
            if value is _MISSING:
                yield f"{name} missing"
                continue
            self._place(value, _qualify(module, name))
            text = self._describe_used(name, value)
            if isinstance(value, _CODE):
                yield f"{name} {text}"
            else:
                self.add_value(_qualify(module, name), text)
                yield f"{name} value"

    def _describe_used(self, name: str, value: Any) -> str:
        try:
            return self.describe(value)
        except _NoDigest as exc:
            if exc.name is None:
                exc.name = name
            raise

    def _describe_class(self, kind: type) -> str:
        module, name = kind.__module__, kind.__qualname__
        if id(kind) in self._names:
            return f"own {self._names[id(kind)]}"
        if _is_installed(module):
            if _find_attribute(module, name) is kind or module == "builtins":
                return f"installed {module}:{name}"
            raise _NoDigest(f"the class {name!r} was made while {module} ran")
        part = self._reserve(_qualify(module, name), kind, "class")
        members = {key: _unwrap(one) for key, one in vars(kind).items()}
        for key, one in members.items():
            self._place(one, _qualify(module, f"{name}.{key}"))
        methods = [one for one in members.values() if _is_written(one)]
        # Methods first: their code shows whether their text is the one that was loaded.
        texts = [self.describe(one) for one in (*methods, *kind.__bases__)]
        texts.append(_read_class(kind, methods))
        texts += [
            f"{key} {self._describe_used(key, one)}"
            for key, one in members.items()
            # Plain values may have been assigned later; others are as the source says.
            if not key.startswith("_") and type(one) in (*_PLAIN, *_CONTAINERS)
        ]
        self._finish(part, "\n".join(texts))
        return f"own {part}"

    def _place(self, value: object, place: str) -> None:
        """Name a lambda by the first place where it was found."""
        if isinstance(value, FunctionType) and _find_own_name(value).endswith("<lambda>"):
            self._places.setdefault(id(value), place)

    def _reserve(self, name: str, owner: Any, kind: str) -> str:
        """Return the name of a part; for a name that is in use, with its kind and a number."""
        key = owner if isinstance(owner, str) else id(owner)
        if key not in self._names:
            same = chain([name, f"{name} ({kind})"], (f"{name} ({kind} {n})" for n in count(2)))
            self._names[key] = next(one for one in same if one not in self.parts)
            self._kept.append(owner)
            self.parts[self._names[key]] = ""  # functions may name each other
        return self._names[key]

    def _finish(self, part: str, text: str) -> None:
        self.parts[part] = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def _read_function(self, code: CodeType) -> str:
        source = self._read_source(code)
        found = {ast.unparse(node) for node in ast.walk(source.tree) if _is_node_of(node, code)}
        if len(found) != 1:
            raise _NoDigest(f"{code.co_name!r} has the same place as another one; use `def`")
        return found.pop()

    def _read_source(self, code: CodeType) -> _Source:
        """Return the text with this code; refuses one that changed after it was loaded."""
        file, text = code.co_filename, ""
        for _ in range(2):
            text = "".join(linecache.getlines(file))
            if text and _make_key(code) in self._parse(text, code).codes:
                return self._parse(text, code)
            linecache.checkcache(file)  # it may have been read before the file was loaded
        if file.startswith(_MAGIC):
            raise _NoDigest(
                f"{code.co_name!r} was defined in a cell with a magic such as %%time, which hides "
                "its source; define it in a cell without one"
            )
        if not text or file == "<string>":  # since Python 3.13 the name of a `-c` program's text
            raise _NoDigest(
                f"the source of {code.co_name!r} is not known; define it in a file or in a cell of "
                "a notebook without a magic such as %%prun"
            )
        raise _NoDigest(f"{file} was changed after {code.co_name!r} was loaded; load it again")

    def _parse(self, text: str, code: CodeType) -> _Source:
        if text not in self._sources:
            try:
                tree = ast.parse(text)
            except SyntaxError as exc:
                raise _NoDigest(f"{code.co_filename} is not Python: {exc}") from exc
            keys = frozenset(_make_key(one) for one in _compile_source(tree, code))
            self._sources[text] = _Source(tree, keys)
        return self._sources[text]


def _describe_plain(value: object) -> str:
    # Decimal texts of integers have a limit.
    shown = hex(value) if type(value) is int else repr(value)
    return f"{type(value).__name__} {shown}"


def _find_own_name(function: FunctionType) -> str:
    """Return a function's qualified name; decorators copy that of what they wrap."""
    is_wrapper = hasattr(function, "__wrapped__")
    return function.__code__.co_qualname if is_wrapper else function.__qualname__


def _qualify(module: str, name: str) -> str:
    return name if module == "__main__" else f"{module}:{name}"


def _is_installed(module: str) -> bool:
    """Whether a loaded module belongs to Python, to gta-bench or to an installed package."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "gta_bench":
        return True
    loaded = sys.modules.get(module)
    return _is_in_packages(
        [getattr(loaded, "__file__", None), *(getattr(loaded, "__path__", None) or ())]
    )


def _is_own_import(module: str) -> bool:
    """Whether a module that a function imports is the user's; a missing one counts by its name."""
    top = module.partition(".")[0]
    if not top or top in sys.modules:
        return not top or not _is_installed(top)
    found = find_spec(top)
    if top in sys.stdlib_module_names or found is None:
        return False
    return not _is_in_packages([found.origin, *(found.submodule_search_locations or ())])


def _is_in_packages(places: Sequence[str | None]) -> bool:
    roots = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    paths = [Path(place) for place in places if place]
    return any(
        _SITE & {*path.parts} or any(path.is_relative_to(root) for root in roots) for path in paths
    )


def _describe_module(module: ModuleType) -> str:
    if not _is_installed(module.__name__):
        raise _NoDigest(
            f"the module {module.__name__!r} is your own; name its functions at the top of the "
            f"file, as in `from {module.__name__} import …`"
        )
    return f"module {module.__name__}"


def _find_attribute(module: str, path: str) -> object:
    found: object = sys.modules.get(module, _MISSING)
    for name in path.split("."):
        found = getattr(found, name, _MISSING)
    return found


def _find_names(code: CodeType) -> Iterator[tuple[str, ...]]:
    """Yield the globals that code loads, with the attributes that it takes of them at once.

    An import inside a function counts as a name that begins with `import`.
    """
    path: tuple[str, ...] = ()
    level = listed = 0  # the two constants before an import
    for step in dis.get_instructions(code):
        if step.opname in _FILLER:
            continue
        if path and step.opname in _ATTRIBUTE:
            path = (*path, step.argval)
            continue
        if path:
            yield path
        path = (step.argval,) if step.opname in _GLOBAL else ()
        if step.opname == "IMPORT_NAME":
            yield ("import", f"{'.' * level}{step.argval}")
        level, listed = listed, step.argval
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _find_names(one)


def _resolve(path: tuple[str, ...], names: Mapping[str, Any]) -> tuple[str, Any]:
    """Return what a path names: a global, or the attribute of one of the user's modules."""
    if path[0] == "import":
        if _is_own_import(path[1]):
            raise _NoDigest(f"it imports your own {path[1]!r}; import it at the top of the file")
        return path[1], None
    name, value = path[0], names.get(path[0], vars(builtins).get(path[0], _MISSING))
    if name.startswith("__") and name.endswith("__"):
        return name, None
    for attribute in path[1:]:
        if not isinstance(value, ModuleType) or _is_installed(value.__name__):
            break
        name, value = f"{name}.{attribute}", getattr(value, attribute, _MISSING)
    return name, value


def _unwrap(member: object) -> object:
    """Return the function of a method, as it is in the class."""
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def _is_written(member: object) -> TypeGuard[FunctionType]:
    """Whether a member of a class is a function with a source; generated ones have none."""
    return isinstance(member, FunctionType) and bool(
        linecache.getlines(member.__code__.co_filename)
    )


def _read_cell(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


def _read_class(kind: type, methods: Sequence[FunctionType]) -> str:
    """Return the source of a class, in the file of its methods or of its module."""
    files = {one.__code__.co_filename for one in methods}
    module = sys.modules.get(kind.__module__)
    if not files and (file := getattr(module, "__file__", None)) is not None:
        linecache.checkcache(file)
        files = {file}
    found = {
        ast.unparse(node)
        for file in files
        for name, node in _find_classes(ast.parse("".join(linecache.getlines(file))))
        if name == kind.__qualname__
    }
    if len(found) != 1:
        raise _NoDigest(f"the source of the class {kind.__qualname__!r} is not known; use a file")
    return found.pop()


def _find_classes(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.ClassDef):
            yield f"{prefix}{child.name}", child
            inner = f"{prefix}{child.name}."
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{child.name}.<locals>."
        yield from _find_classes(child, inner)


def _compile_source(tree: ast.Module, code: CodeType) -> Iterator[CodeType]:
    """Yield all code in a text, as files are compiled and, by statement, as notebooks are.

    The bytecode of `module.name()` differs if the import of the module is compiled with it.
    """
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | (code.co_flags & _FUTURE)
    for unit in (tree, *(ast.Module([node], []) for node in tree.body)):
        with suppress(SyntaxError):  # some cells are only valid by statement
            made = compile(unit, code.co_filename, "exec", flags=flags, dont_inherit=True)
            yield from _walk_codes(made)


def _walk_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _walk_codes(one)


def _make_key(code: CodeType) -> tuple[Any, ...]:
    """Return what code and its place in the file determine; code that ran is compared, too."""
    consts = tuple(
        _make_key(one) if isinstance(one, CodeType) else _describe_plain(one)
        for one in code.co_consts
        if not isinstance(one, frozenset)
    )
    place = code.co_firstlineno, code.co_linetable
    return code.co_qualname, place, code.co_code, code.co_names, code.co_varnames, consts


def _is_node_of(node: ast.AST, code: CodeType) -> bool:
    """Whether a node is the definition of this code."""
    if isinstance(node, ast.Lambda):
        body = node.body
        place = body.lineno, body.end_lineno, body.col_offset, body.end_col_offset
        return code.co_name == "<lambda>" and place in [*code.co_positions()]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return (node.name, first) == (code.co_name, code.co_firstlineno)
