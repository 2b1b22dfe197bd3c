"""Programs on foreign files: what they see, what they leave, how they are stopped."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gta_bench.confine import process
from gta_bench.confine.jail import Argv, Jail
from gta_bench.confine.limits import MIB, JailLimits, ProgramResult
from gta_bench.errors import ConfinedError, EnvironmentProblem, ToolError, ToolUnavailable
from tests.confine.corpus import marked_limits, wait_until_gone
from tests.confine.users import USERS, run_as

QUICK = JailLimits(wall_seconds=20.0, cpu_seconds=10, memory_bytes=512 * MIB)


def run(jail: Jail, argv: Argv, **options: object) -> ProgramResult:
    limits = options.pop("limits", QUICK)
    return asyncio.run(jail.run_program(argv, limits=limits, **options))  # type: ignore[arg-type]


def shell(jail: Jail, script: str, **options: object) -> ProgramResult:
    return run(jail, ["sh", "-c", script], **options)


def failure(jail: Jail, script: str, **options: object) -> ConfinedError:
    with pytest.raises(ConfinedError) as caught:
        shell(jail, script, **options)
    return caught.value


def refuses_socket(jail: Jail, family: str, kind: int, use: str) -> None:
    code = f"import socket\ns = socket.socket(socket.{family}, {kind})\ns.{use}\n"
    result = run(jail, [sys.executable, "-S", "-c", code])
    assert not result.succeeded
    assert b"Error" in result.stderr


class TestFiles:
    def test_inputs_are_read_and_what_is_left_comes_home(self, jail: Jail, tmp_path: Path) -> None:
        source = tmp_path / "b.txt"
        source.write_bytes(b"two")
        result = shell(
            jail,
            "cat ../inputs/a.txt ../inputs/b.txt > both.txt; mkdir sub; echo x > sub/c",
            inputs={"a.txt": b"one", "b.txt": source},
        )
        assert result.succeeded
        assert result.files == {"both.txt": b"onetwo", "sub/c": b"x\n"}
        assert result.report.jail == jail.kind

    def test_the_umask_of_the_caller_does_not_matter(self, jail: Jail) -> None:
        before = os.umask(0o077)
        try:
            result = shell(jail, "cat ../inputs/a > b", inputs={"a": b"same"})
        finally:
            os.umask(before)
        assert result.files == {"b": b"same"}, result.stderr

    def test_inputs_cannot_be_written(self, jail: Jail) -> None:
        script = "echo x > ../inputs/a; rm ../inputs/a; echo y > ../inputs/b; cat ../inputs/a"
        assert shell(jail, script, inputs={"a": b"same"}).stdout == b"same"

    def test_absolute_places_are_known_to_a_function(self, jail: Jail) -> None:
        result = run(
            jail,
            lambda at: ["cp", f"{at.inputs}/a", f"{at.work}/copy"],
            inputs={"a": b"data"},
        )
        assert result.files == {"copy": b"data"}

    def test_scratch_is_home_and_is_thrown_away(self, jail: Jail) -> None:
        result = shell(jail, 'echo x > "$HOME/cache" && cat "$TMPDIR/cache"')
        assert result.stdout == b"x\n"
        assert result.files == {}

    def test_links_that_are_left_are_named_and_not_followed(self, jail: Jail) -> None:
        result = shell(jail, "echo x > real; ln -s /etc/passwd link; mkfifo pipe; true")
        assert result.files == {"real": b"x\n"}
        assert set(result.skipped) <= {"link", "pipe"}
        if jail.kind == "bubblewrap":
            assert result.skipped == ("link", "pipe")

    @pytest.mark.parametrize("name", ["../x", "a/b", "", "..", "a\nb", "x" * 300])
    def test_an_input_must_have_a_plain_name(self, jail: Jail, name: str) -> None:
        with pytest.raises(ToolError, match="not a plain file name"):
            run(jail, ["true"], inputs={name: b""})

    def test_an_input_that_is_a_link_is_refused(self, jail: Jail, tmp_path: Path) -> None:
        link = tmp_path / "link"
        link.symlink_to("/etc/hostname")
        with pytest.raises(OSError, match="not a regular file"):
            run(jail, ["true"], inputs={"a": link})

    def test_folders_of_the_host_can_be_lent(self, jail: Jail, tmp_path: Path) -> None:
        (tmp_path / "settings").write_bytes(b"lent")
        tmp_path.chmod(0o755)
        argv = ["cat", str(tmp_path / "settings")]
        assert run(jail, argv).report.exit_status != 0
        assert run(jail, argv, readable=[tmp_path]).stdout == b"lent"

    @pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's jail is that user")
    @pytest.mark.parametrize("jail", ["bubblewrap"], indirect=True)
    def test_what_only_root_can_read_is_not_lent(self, jail: Jail, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)
        with pytest.raises(EnvironmentProblem, match=r"readable only by its owner.*chmod -R o\+rX"):
            run(jail, ["true"], readable=[tmp_path])


class TestTalk:
    def test_stdin_stdout_and_stderr_are_passed(self, jail: Jail) -> None:
        result = shell(jail, "cat; echo err >&2; exit 3", stdin=b"x" * 200_000)
        assert result.stdout == b"x" * 200_000
        assert result.stderr == b"err\n"
        assert result.report.exit_status == 3
        assert not result.succeeded

    def test_a_program_that_reads_nothing_does_not_stop_us(self, jail: Jail) -> None:
        assert run(jail, ["true"], stdin=b"x" * 5_000_000).succeeded

    def test_the_environment_is_ours_alone(
        self, jail: Jail, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-outside")
        names = {
            line.split(b"=")[0].decode()
            for line in run(jail, ["env"], environment={"MINE": "1"}).stdout.splitlines()
        }
        assert "MINE" in names
        assert names <= {
            "HOME", "LANG", "LC_CTYPE", "MINE", "MPLBACKEND", "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS", "PATH", "PYTHONHASHSEED", "TMPDIR",
        }  # fmt: skip

    def test_a_missing_program_is_unavailable_and_named(self, jail: Jail) -> None:
        with pytest.raises(ToolUnavailable, match="no-such-program could not be started"):
            run(jail, ["no-such-program"])
        with pytest.raises(
            ToolUnavailable, match=r"^no-such-program could.*Install no-such-program;"
        ):
            asyncio.run(jail.run_program(lambda _: ["/usr/bin/no-such-program"]))

    def test_the_path_of_a_program_may_go_up(self, jail: Jail) -> None:
        """`../venv/bin/python script.py` is such a path, and no jail has the folder before `..`."""
        program = Path("/tmp/../no-such-folder/..", sys.executable[1:])
        assert run(jail, [str(program), "-c", "print(6 * 7)"]).stdout == b"42\n"


class TestWalls:
    @pytest.mark.parametrize(
        "script",
        [
            "cat /etc/passwd",
            "cat /etc/shadow",
            "ls /home",
            "ls /var/log",
            "echo x > /usr/x",
            "echo x > /etc/x",
            "cat /proc/*/environ | grep -a GTA_PLANTED",
            "cat {secret}",
            "echo x >> {secret}",
            "chmod 777 {secret}",
            "touch {secret}",
            "rm {secret}",
            "ln {secret} here && cat here",
            "cp /bin/true ./true && unshare -U true",
            "unshare -n true",
            "mount -t tmpfs none /tmp",
            "/usr/sbin/chroot /usr /bin/true",
        ],
    )
    def test_nothing_beyond_what_is_declared_is_reached(
        self, jail: Jail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
    ) -> None:
        monkeypatch.setenv("GTA_PLANTED", "1")
        secret = tmp_path / "secret"
        secret.write_bytes(b"planted")
        result = shell(jail, script.format(secret=secret))
        assert not result.succeeded
        assert b"planted" not in result.stdout
        assert secret.read_bytes() == b"planted"

    @pytest.mark.parametrize(
        ("family", "kind", "verb", "address"),
        [
            ("AF_INET", 1, "connect", "('127.0.0.1', 1)"),
            ("AF_INET6", 1, "connect", "('::1', 1)"),
            ("AF_UNIX", 1, "connect", "'/run/dbus/system_bus_socket'"),
            ("AF_VSOCK", 1, "connect", "(2, 1)"),
            ("AF_ALG", 5, "bind", "('hash', 'sha256')"),
        ],
    )
    def test_no_kind_of_socket_reaches_the_host(
        self, jail: Jail, family: str, kind: int, verb: str, address: str
    ) -> None:
        refuses_socket(jail, family, kind, f"{verb}({address})")

    # In bubblewrap netlink tells about the empty network of the jail only.
    @pytest.mark.parametrize("jail", ["landlock"], indirect=True)
    def test_no_netlink_socket_reaches_the_host(self, jail: Jail) -> None:
        refuses_socket(jail, "AF_NETLINK", 3, "bind((0, 0))")

    # Landlock has no network of its own, and no sockets at all: see the test above.
    @pytest.mark.parametrize("jail", ["bubblewrap"], indirect=True)
    def test_there_is_no_other_network_than_its_own(self, jail: Jail) -> None:
        shown = shell(jail, "cat /proc/net/dev").stdout.decode().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in shown] == ["lo"]

    def test_no_signal_reaches_a_process_outside(self, jail: Jail) -> None:
        with subprocess.Popen(["sleep", "30"]) as victim:
            shell(jail, f"kill -9 {victim.pid}; kill -9 {os.getpid()}; kill -9 -1; true")
            assert victim.poll() is None
            victim.kill()

    def test_programs_may_start_programs_unless_told_not_to(self, jail: Jail) -> None:
        script = "echo a | cat | cat"
        assert shell(jail, script).stdout == b"a\n"
        refused = shell(jail, script, allow_fork=False)
        assert refused.stdout == b""
        assert b"fork" in refused.stderr


# Root looks into any folder, but not into one whose path is too long.
UNSEEN_FOLDERS = [
    "n=$(printf %0250d 0); for i in $(seq 20); do mkdir $n; cd -P $n; done; sleep 60",
    *([] if os.geteuid() == 0 else ["umask 477; mkdir d; sleep 60"]),
]


class TestLimits:
    def test_a_program_that_takes_too_long_is_stopped_with_all_it_started(self, jail: Jail) -> None:
        limits = marked_limits()
        mark = f"{limits.memory_bytes}.25"
        script = f"sleep {mark} & (sleep {mark} &) ; setsid sleep {mark} & sleep {mark}"
        error = failure(jail, script, limits=JailLimits(wall_seconds=3.0))
        assert error.cause == "timeout"
        assert "sh was stopped after 3 seconds" in str(error)
        assert wait_until_gone(mark) == []

    def test_nothing_runs_on_after_its_program_has_ended(self, jail: Jail) -> None:
        mark = f"{marked_limits().memory_bytes}.5"
        assert shell(jail, f"sleep {mark} & echo done").stdout == b"done\n"
        assert wait_until_gone(mark) == []

    def test_a_fork_bomb_is_survived(self, jail: Jail) -> None:
        limits = JailLimits(wall_seconds=1.5, cpu_seconds=1, processes=30)
        code = (
            "import os, time\n"
            "for _ in range(200):\n"
            "    try:\n"
            "        os.fork()\n"
            "    except OSError:\n"
            "        print('no more', flush=True)\n"
            "        time.sleep(9)\n"
        )
        with pytest.raises(ConfinedError, match="stopped after"):
            run(jail, [sys.executable, "-S", "-c", code], limits=limits)
        assert run(jail, ["true"]).succeeded

    def test_processor_time_is_bounded(self, jail: Jail) -> None:
        error = failure(
            jail, "while :; do :; done", limits=JailLimits(wall_seconds=60, cpu_seconds=1)
        )
        assert error.cause in ("timeout", "killed")
        assert "60 seconds" not in str(error)

    def test_output_is_bounded(self, jail: Jail) -> None:
        error = failure(jail, "cat /dev/zero", limits=JailLimits(output_bytes=100_000))
        assert error.cause == "output"

    def test_what_it_writes_is_bounded(self, jail: Jail) -> None:
        limits = JailLimits(wall_seconds=9, disk_bytes=4 * MIB, file_bytes=2 * MIB)
        script = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > $i; done"
        assert failure(jail, script, limits=limits).cause == "disk"

    def test_how_many_files_it_writes_is_bounded(self, jail: Jail) -> None:
        script = "i=0; while :; do i=$((i+1)); : > $i; done"
        limits = JailLimits(wall_seconds=9, disk_files=100)
        assert failure(jail, script, limits=limits).cause == "disk"

    def test_deleted_files_count_while_they_are_open(self, jail: Jail) -> None:
        code = (
            "import os, time\n"
            "for _ in range(6):\n"
            "    file = os.open('u', os.O_CREAT | os.O_WRONLY | os.O_EXCL)\n"
            "    os.unlink('u')\n"
            "    os.write(file, bytes(1 << 20))\n"
            "time.sleep(60)\n"
        )
        limits = JailLimits(wall_seconds=9, disk_bytes=4 * MIB)
        with pytest.raises(ConfinedError) as caught:
            run(jail, [sys.executable, "-S", "-c", code], limits=limits)
        assert caught.value.cause == "disk"

    @pytest.mark.parametrize("script", UNSEEN_FOLDERS)
    def test_a_folder_that_cannot_be_looked_into_is_refused(self, jail: Jail, script: str) -> None:
        error = failure(jail, script, limits=JailLimits(wall_seconds=9))
        assert error.cause == "disk", str(error)
        assert "a folder that cannot be read" in str(error)

    def test_one_large_file_is_bounded(self, jail: Jail) -> None:
        limits = JailLimits(file_bytes=MIB)
        error = failure(jail, "exec dd if=/dev/zero of=big bs=1M count=9", limits=limits)
        assert error.cause == "disk"
        assert "a file larger than 1 MiB" in str(error)

    def test_a_pipe_nobody_reads_ends_its_writer(self, jail: Jail) -> None:
        assert shell(jail, "yes | head -n 1").stdout == b"y\n"

    def test_what_it_leaves_is_bounded_even_if_written_at_the_last_moment(self, jail: Jail) -> None:
        limits = JailLimits(disk_bytes=MIB)
        error = failure(jail, "truncate -s 30M sparse", limits=limits)
        assert error.cause == "disk"

    def test_memory_is_bounded(self, jail: Jail) -> None:
        code = "bytearray(3 << 30)"
        result = run(jail, [sys.executable, "-S", "-c", code])
        assert b"MemoryError" in result.stderr

    def test_a_crash_is_named(self, jail: Jail) -> None:
        code = "import ctypes; ctypes.string_at(0)"
        with pytest.raises(ConfinedError, match="SIGSEGV") as caught:
            run(jail, [sys.executable, "-S", "-c", code])
        assert caught.value.cause == "crashed"

    def test_shared_memory_and_scratch_have_a_size(self, jail: Jail) -> None:
        script = (
            "for place in /dev/shm /dev $HOME; do"
            " for i in 1 2 3 4; do head -c 3000000 /dev/zero > $place/$i || exit 0; done; done;"
            " echo all written"
        )
        limits = JailLimits(disk_bytes=4 * MIB)
        try:
            assert b"all written" not in shell(jail, script, limits=limits).stdout
        except ConfinedError as exc:
            assert exc.cause == "disk"


@pytest.mark.slow
@pytest.mark.skipif(len(USERS) < 2, reason="these tests run unprivileged already")
def test_all_of_this_holds_for_an_unprivileged_user_too() -> None:
    arguments = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--confcutdir=tests/confine"]
    done = run_as("unprivileged", [*arguments, "tests/confine/test_programs.py"])
    if done is None:
        pytest.skip("no Python that an unprivileged user can start")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_a_jail_that_ended_without_a_word_is_started_once_more(
    jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing foreign has run by then."""
    starts: list[int] = []
    real = process.run

    def run_once(*arguments: Any, **options: Any) -> process.EndedProcess:
        starts.append(1)
        if len(starts) == 1:
            return process.EndedProcess(
                status=-9, stdout=b"", stderr=b"", seconds=0.1, stopped=None
            )
        return real(*arguments, **options)

    monkeypatch.setattr(process, "run", run_once)
    assert asyncio.run(jail.run_program(["echo", "once"])).stdout == b"once\n"
    assert len(starts) == 2
