"""The workspace corpus: hostile names, paths, links, pipes, devices and exchanges.

None escapes the workspace, none blocks: an alarm ends every test after thirty seconds.
"""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from gta_bench.confine import files
from gta_bench.confine.workspace import Quota, Workspace
from gta_bench.errors import EnvironmentProblem, ToolError

SECRET = b"planted-secret"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture(autouse=True)
def thirty_seconds() -> Iterator[None]:
    def fail(_: int, __: FrameType | None) -> None:
        raise TimeoutError("it blocked")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, 30)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    file = tmp_path / "outside" / "secret.txt"
    file.parent.mkdir()
    file.write_bytes(SECRET)
    return file


@pytest.fixture
def space(tmp_path: Path, outside: Path) -> Workspace:
    picture = tmp_path / "a.png"
    picture.write_bytes(PNG)
    return Workspace.create(tmp_path / "run" / "task", {"inputs/a.png": picture})


def everything_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


HOSTILE_PATHS = [
    "../outside/secret.txt",
    "../../outside/secret.txt",
    "inputs/../../../outside/secret.txt",
    "inputs/../outputs/../../../outside/secret.txt",
    "./../inputs/a.png",
    "inputs/..",
    "..",
    "...",
    ".",
    "",
    " ",
    "/",
    "//",
    "inputs",
    "outputs",
    "inputs/",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "/proc/self/fd/0",
    "/dev/zero",
    "/dev/stdin",
    "/dev/tty",
    "~/.ssh/id_rsa",
    "~root/.profile",
    "$HOME/.profile",
    "${{HOME}}/x",
    "`cat /etc/passwd`",
    "file:///etc/passwd",
    "http://127.0.0.1/x",
    "inputs/%2e%2e/%2e%2e/outside/secret.txt",
    "inputs/..%2f..%2foutside/secret.txt",
    "inputs\\..\\..\\..\\outside\\secret.txt",
    "..\\outside\\secret.txt",
    "C:\\Windows\\win.ini",
    "\\\\host\\share\\x",
    "\\\\?\\C:\\x",
    "inputs/a.png\0.txt",
    "inputs/\0",
    "inputs/a.png/",
    "inputs/a.png/..",
    "inputs/a.png/x",
    "inputs/sub/a.png",
    "inputs/inputs/a.png",
    ".partial/x",
    "inputs/.",
    "inputs/./..",
    "inputs/a.png\n",
    "inputs/a\u200b.png",
    "inputs/\u202egnp.a",
    "\uff49nputs/a.png",
    "inputs\uff0fa.png",
    "inputs/\uff0e\uff0e/secret",
    "inputs/\ud800",
    "\udcff\udcfe",
    "inputs/" + "x" * 300,
    "x" * 100_000,
    "inputs/" * 500 + "a.png",
    "../" * 5000 + "etc/passwd",
    "inputs/*",
    "inputs/?.png",
    "inputs/[a].png",
    "-rf",
    "--help",
    "inputs/A.PNG",
    "INPUTS/a.png",
    "a.png b.png",
    "a.png;id",
    "a.png|id",
]
GOOD_SPELLINGS = {"inputs/a.png/", "inputs/a.png\n"}  # blanks and slashes around are forgiven


@pytest.mark.parametrize("spelling", HOSTILE_PATHS, ids=lambda text: ascii(text[:40]))
def test_a_hostile_path_reads_nothing(space: Workspace, spelling: str) -> None:
    if spelling in GOOD_SPELLINGS:
        assert space.read(spelling) == PNG
        return
    with pytest.raises(ToolError) as caught:
        space.read(spelling)
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("spelling", HOSTILE_PATHS, ids=lambda text: ascii(text[:40]))
def test_a_hostile_name_writes_into_the_outputs_or_nowhere(
    space: Workspace, tmp_path: Path, spelling: str
) -> None:
    before = everything_below(tmp_path)
    try:
        written = space.write(spelling, b"x", suffix=".txt")
    except ToolError:
        assert everything_below(tmp_path) == before
        return
    name = written.path.removeprefix("outputs/")
    assert everything_below(tmp_path) - before == {f"run/task/outputs/{name}"}
    assert "/" not in name
    assert space.read(written.path) == b"x"


def make_fifo(path: Path, _: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path, _: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a unix socket is short
    try:
        server.bind(path.name)
    finally:
        os.chdir(here)
        server.close()


def make_device(path: Path, _: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes devices")
    try:
        os.mknod(path, 0o020666, os.makedev(1, 5))  # /dev/zero: endless
    except PermissionError:
        pytest.skip("devices are not allowed here")


def make_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def make_relative_link(path: Path, outside: Path) -> None:
    path.symlink_to(os.path.relpath(outside, path.parent))


def make_dangling_link(path: Path, _: Path) -> None:
    path.symlink_to("nowhere")


def make_loop(path: Path, _: Path) -> None:
    path.symlink_to(path.name)


def make_link_to_device(path: Path, _: Path) -> None:
    path.symlink_to("/dev/zero")


def make_link_to_proc(path: Path, _: Path) -> None:
    path.symlink_to("/proc/self/environ")


def make_folder(path: Path, _: Path) -> None:
    path.mkdir()


def make_link_to_a_good_file(path: Path, _: Path) -> None:
    path.symlink_to("../inputs/a.png")


Maker = Callable[[Path, Path], None]
MAKERS: list[Maker] = [
    make_fifo,
    make_socket,
    make_device,
    make_link,
    make_relative_link,
    make_dangling_link,
    make_loop,
    make_link_to_device,
    make_link_to_proc,
    make_folder,
    make_link_to_a_good_file,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
class TestPlantedThings:
    def test_it_is_not_read(self, space: Workspace, outside: Path, make: Maker) -> None:
        make(space.root / "outputs" / "x.png", outside)
        with pytest.raises(ToolError, match="not a regular file"):
            space.read("outputs/x.png")

    def test_it_is_not_read_as_an_input_either(
        self, space: Workspace, outside: Path, make: Maker
    ) -> None:
        make(space.root / "inputs" / "x.png", outside)
        with pytest.raises(ToolError, match="not a regular file"):
            space.read("x.png")

    def test_it_is_listed_as_a_stray(self, space: Workspace, outside: Path, make: Maker) -> None:
        make(space.root / "outputs" / "x.png", outside)
        assert space.outputs().files == ()
        assert space.outputs().strays == ("x.png",)

    def test_it_is_no_image(self, space: Workspace, outside: Path, make: Maker) -> None:
        make(space.root / "outputs" / "x.png", outside)
        assert space.newest_image() is None
        with pytest.raises(ToolError, match="not an image"):
            space.resolve_images(["outputs/x.png"])

    def test_writing_under_its_name_goes_beside_it(
        self, space: Workspace, outside: Path, make: Maker
    ) -> None:
        make(space.root / "outputs" / "x.png", outside)
        assert space.write("x.png", PNG).path == "outputs/x-2.png"
        assert outside.read_bytes() == SECRET

    def test_overwriting_it_never_writes_through_it(
        self, space: Workspace, outside: Path, make: Maker
    ) -> None:
        make(space.root / "outputs" / "x.png", outside)
        if make is make_folder:
            with pytest.raises(ToolError):
                space.write("x.png", PNG, overwrite=True)
            return
        space.write("x.png", PNG, overwrite=True)
        assert space.read("outputs/x.png") == PNG
        assert outside.read_bytes() == SECRET
        assert space.read("inputs/a.png") == PNG

    def test_it_is_no_attachment(self, tmp_path: Path, outside: Path, make: Maker) -> None:
        make(tmp_path / "attachment", outside)
        with pytest.raises(EnvironmentProblem):
            Workspace.create(tmp_path / "other", {"inputs/x": tmp_path / "attachment"})


@pytest.mark.parametrize("folder", ["inputs", "outputs", ".partial"])
def test_a_folder_exchanged_for_a_link_is_not_entered(
    space: Workspace, outside: Path, folder: str
) -> None:
    (space.root / folder).rename(space.root / "moved")
    (space.root / folder).symlink_to(outside.parent)
    with pytest.raises(EnvironmentProblem, match="is not a folder"):
        space.write("x", b"x")
        space.read("inputs/secret.txt")
    with contextlib.suppress(ToolError, EnvironmentProblem):
        assert space.read("secret.txt") != SECRET
    assert [path.name for path in outside.parent.iterdir()] == ["secret.txt"]


def test_a_workspace_exchanged_for_a_link_is_not_entered(space: Workspace, outside: Path) -> None:
    fake = outside.parent / "fake"
    for name in ("inputs", "outputs", ".partial"):
        (fake / name).mkdir(parents=True)
    (fake / "inputs" / "a.png").write_bytes(SECRET)
    space.root.rename(space.root.with_name("moved"))
    space.root.symlink_to(fake)
    with pytest.raises(EnvironmentProblem):
        space.read("inputs/a.png")
    with pytest.raises(EnvironmentProblem):
        space.write("x", b"x")


class Exchanger(threading.Thread):
    """Exchanges a file for something else and back, as fast as it can."""

    def __init__(self, path: Path, make: Maker, outside: Path) -> None:
        super().__init__(daemon=True)
        self.path, self.make, self.outside = path, make, outside
        self.stop = threading.Event()
        self.rounds = 0

    def run(self) -> None:
        good, bad = self.path.with_name("good"), self.path.with_name("bad")
        while not self.stop.is_set():
            good.write_bytes(PNG)
            good.replace(self.path)
            self.make(bad, self.outside)
            bad.replace(self.path)
            self.rounds += 1


@pytest.mark.parametrize(
    "make", [make_link, make_fifo, make_link_to_device], ids=lambda make: make.__name__
)
def test_a_file_exchanged_midway_is_read_whole_or_refused(
    space: Workspace, outside: Path, make: Maker
) -> None:
    target = space.root / "outputs" / "x.png"
    target.write_bytes(PNG)
    exchanger = Exchanger(target, make, outside)
    exchanger.start()
    seen = set()
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        try:
            seen.add(space.read("outputs/x.png"))
        except ToolError:
            seen.add(b"refused")
    exchanger.stop.set()
    exchanger.join(1)
    assert exchanger.rounds > 10
    assert seen <= {PNG, b"refused"}


def test_a_file_exchanged_between_look_and_opening_is_refused(
    space: Workspace, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one moment that luck would have to hit, hit on purpose."""
    target = space.root / "outputs" / "x.png"
    look = os.stat

    def look_then_exchange(*arguments: object, **options: object) -> os.stat_result:
        result = look(*arguments, **options)  # type: ignore[arg-type]
        if arguments[0] == "x.png":
            target.unlink()
            target.symlink_to(outside)
        return result

    target.write_bytes(PNG)
    monkeypatch.setattr(os, "stat", look_then_exchange)
    with pytest.raises(ToolError, match="not a regular file"):
        space.read("outputs/x.png")


def test_a_name_taken_midway_is_never_written_through(space: Workspace, outside: Path) -> None:
    target = space.root / "outputs" / "x.png"
    target.write_bytes(PNG)
    exchanger = Exchanger(target, make_link, outside)
    exchanger.start()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        with contextlib.suppress(ToolError, FileNotFoundError):
            space.write("x.png", b"agent", overwrite=True)
    exchanger.stop.set()
    exchanger.join(1)
    assert outside.read_bytes() == SECRET


class TestSizes:
    def test_a_file_that_claims_to_be_endless_is_refused(self, space: Workspace) -> None:
        with (space.root / "outputs" / "x.png").open("wb") as sparse:
            sparse.truncate(1 << 40)
        with pytest.raises(ToolError, match="at most"):
            space.read("outputs/x.png")
        assert space.outputs().strays == ("x.png",)

    def test_a_file_that_grows_while_it_is_read_is_cut_off(self, tmp_path: Path) -> None:
        file = tmp_path / "log"
        file.write_bytes(b"x" * 10)
        with files.open_regular(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            with file.open("ab") as more:
                more.write(b"y" * 100)
            assert files.read_bounded(stream, size) is None

    def test_a_file_of_the_kernel_that_states_no_size_is_cut_off(self) -> None:
        with files.open_regular(Path("/proc/self/maps")) as stream:
            assert files.read_bounded(stream, 100) is None

    def test_names_that_are_no_text_are_strays(self, space: Workspace) -> None:
        (space.root / "outputs" / os.fsdecode(b"\xff\xfe.png")).write_bytes(PNG)
        (space.root / "outputs" / "line\nbreak").write_bytes(PNG)
        outputs = space.outputs()
        assert outputs.files == ()
        assert len(outputs.strays) == 2
        assert all(name.isprintable() for name in outputs.strays)

    def test_a_quota_is_not_escaped_by_numbered_names(self, tmp_path: Path) -> None:
        space = Workspace.create(tmp_path / "q", {}, quota=Quota(files=5))
        for _ in range(5):
            space.write("same", b"")
        with pytest.raises(ToolError):
            space.write("same", b"")
