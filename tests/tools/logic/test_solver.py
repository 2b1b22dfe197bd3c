from collections.abc import Mapping

import pytest

pytest.importorskip("sympy")

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ConfinedError
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import CallTurn, ReplyTurn
from gta_bench.tools.contract import Available, Equipment, Unavailable
from gta_bench.tools.logic.solver import Solver
from tests.needs import needs
from tests.tools.calling import PLAIN, call, error

CUBIC = """
def solution():
    x = symbols('x')
    return solve(Eq(x**2, 9), x)
"""


def test_all_reference_calls_give_the_recorded_text(
    atomic_tasks: Mapping[str, AtomicTask], equipment: Equipment, workspace: Workspace
) -> None:
    compared = []
    for task in atomic_tasks.values():
        for turn, reply in zip(task.dialogue, task.dialogue[1:], strict=False):
            if isinstance(turn, CallTurn) and turn.call.name == "Solver":
                assert isinstance(reply, ReplyTurn)
                result = call("Solver", workspace, equipment, **turn.call.arguments)
                compared.append(result.text == reply.content)
    assert compared == [True] * 14


def test_the_names_of_upstreams_header_are_there(
    equipment: Equipment, workspace: Workspace
) -> None:
    result = call("Solver", workspace, equipment, command=CUBIC)
    assert result.text == "[-3, 3]"
    assert result.backend.startswith("sympy 1.")
    assert equipment.jail is not None
    assert result.jail == equipment.jail.kind


def test_fenced_code_with_words_around_it_is_run(
    equipment: Equipment, workspace: Workspace
) -> None:
    command = f"I solve it:\n```python{CUBIC}```\nDone."
    assert call("Solver", workspace, equipment, command=command).text == "[-3, 3]"


def test_a_syntax_error_is_named_with_its_line(equipment: Equipment, workspace: Workspace) -> None:
    said = error("Solver", workspace, equipment, command="x = 1\ny = = 2")
    assert said == "Solver: the code failed: SyntaxError: invalid syntax (line 2: y = = 2)"


def test_code_without_solution_is_told_what_is_missing(
    equipment: Equipment, workspace: Workspace
) -> None:
    said = error("Solver", workspace, equipment, command="print(1)")
    assert "must define a function `solution()`" in said


def test_a_long_answer_is_cut_and_says_so(equipment: Equipment, workspace: Workspace) -> None:
    command = "def solution(): return 'x' * 50000"
    result = call("Solver", workspace, equipment, command=command)
    assert result.text.endswith("[The first 20000 of 50000 characters.]")


@needs("bwrap")  # in the other jail, names of files can be seen (and nothing in them)
def test_host_files_and_keys_are_out_of_reach(
    equipment: Equipment, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = workspace.root / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    monkeypatch.setenv("SERPER_API_KEY", "sk-outside")
    command = """
import os
def solution():
    found = [path for path in ("/etc/passwd", "SECRET") if os.path.exists(path)]
    return found, "SERPER_API_KEY" in os.environ
""".replace("SECRET", str(secret))
    assert call("Solver", workspace, equipment, command=command).text == "([], False)"


def test_a_shell_is_out_of_reach(equipment: Equipment, workspace: Workspace) -> None:
    command = "import subprocess\ndef solution(): return subprocess.check_output('id')"
    with pytest.raises(ConfinedError, match="PermissionError") as caught:
        call("Solver", workspace, equipment, command=command)
    assert caught.value.cause == "error"


def test_without_a_jail_it_is_unavailable_and_says_why() -> None:
    assert Solver(PLAIN).check() == PLAIN.no_jail
    assert isinstance(PLAIN.no_jail, Unavailable)


def test_with_a_jail_it_is_available(equipment: Equipment) -> None:
    state = Solver(equipment).check()
    assert isinstance(state, Available)
    assert state.backend.startswith("sympy ")
