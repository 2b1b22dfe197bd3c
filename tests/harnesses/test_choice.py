"""The words of a command, as it is started in its cell."""

from pathlib import Path

import pytest

from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import parse_command


def test_files_of_this_folder_are_named_by_their_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python3 my_agent.py` ended with status 2, as it starts in another folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_agent.py").touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plan.json").touch()
    words = parse_command(
        "python3 my_agent.py run run/plan.json gone.py --x=my_agent.py {task_file}"
    )
    assert words == [
        "python3",
        f"{tmp_path}/my_agent.py",
        "run",
        f"{tmp_path}/run/plan.json",
        "gone.py",
        "--x=my_agent.py",
        "{task_file}",
    ]


def test_a_placeholder_that_nobody_fills_in_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown placeholder \{task\}. Use \{task_file\} and"):
        parse_command("python3 agent.py {task} {workspace}")
    assert parse_command("sh -c 'echo ${x}'") == ["sh", "-c", "echo ${x}"]
