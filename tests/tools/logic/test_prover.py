import time

import pytest

pytest.importorskip("z3")

from gta_bench.confine.workspace import Workspace
from gta_bench.tools.contract import Available, Equipment
from gta_bench.tools.logic.prover import Prover
from tests.tools.calling import PLAIN, call, error

XY = "(declare-const x Int)(declare-const y Int)"


@pytest.mark.parametrize(
    "theorem",
    [
        f"{XY}(assert (> (+ x 1) x))",
        f"{XY}(assert (= (+ x y) (+ y x)))(check-sat)",
        "(assert (forall ((x Int)) (=> (> x 1) (> (* x x) 1))))",
        f"; two at once\n{XY}(assert (<= x x))(assert (=> (< x y) (not (= x y))))(check-sat)",
        "(declare-const p Bool)(assert (or p (not p)))(get-model)(exit)",
    ],
)
def test_what_holds_for_all_values_is_proved(
    equipment: Equipment, workspace: Workspace, theorem: str
) -> None:
    result = call("Prover", workspace, equipment, theorem=theorem)
    assert result.text == "Proved: the assertions hold for all values of the declared constants."
    assert result.backend.startswith("z3-solver ")


def test_what_does_not_hold_is_refuted_with_a_counterexample(
    equipment: Equipment, workspace: Workspace
) -> None:
    theorem = f"{XY}(assert (=> (> x 3) (not (= x 5))))"
    result = call("Prover", workspace, equipment, theorem=theorem)
    assert result.text.startswith("Refuted: the assertions do not hold for all values")
    assert result.text.endswith("Counterexample:\nx = 5")


def test_a_contradiction_is_told_from_a_mere_counterexample(
    equipment: Equipment, workspace: Workspace
) -> None:
    """Many SMT-LIB texts assert a theorem's negation and expect `unsat`."""
    theorem = f"{XY}(assert (not (> (+ x 1) x)))"
    result = call("Prover", workspace, equipment, theorem=theorem)
    assert "contradict each other" in result.text
    assert "if this was a theorem's negation, the theorem is proved" in result.text
    assert result.text.endswith("Counterexample:\nany values")


def test_what_takes_too_long_is_unknown_with_the_reason(
    equipment: Equipment, workspace: Workspace
) -> None:
    cubes = "(declare-const a Int)(declare-const b Int)(declare-const c Int)"
    theorem = f"{cubes}(assert (not (= (+ (* a a a) (* b b b) (* c c c)) 42)))"
    start = time.monotonic()
    result = call("Prover", workspace, equipment, theorem=theorem)
    assert result.text.startswith("Unknown: Z3 could not decide it (")
    assert time.monotonic() - start < 15


@pytest.mark.parametrize(
    "theorem", ["", "  \n", "; only words", "(declare-const x Int)(check-sat)"]
)
def test_a_theorem_without_assertions_is_not_proved_but_refused(
    equipment: Equipment, workspace: Workspace, theorem: str
) -> None:
    assert "has no assertion" in error("Prover", workspace, equipment, theorem=theorem)


@pytest.mark.parametrize(
    ("theorem", "said"),
    [
        ("(assert (> y x))", "unknown constant"),
        ("(assert (forall ((x Int)) (> x", "line 1 column"),
        ("1 + 1 = 2", "invalid command"),
        ("(" * 50_000, "not valid SMT-LIB2"),
    ],
)
def test_what_is_not_smt_lib_is_refused_with_the_place(
    equipment: Equipment, workspace: Workspace, theorem: str, said: str
) -> None:
    assert said in error("Prover", workspace, equipment, theorem=theorem)


def test_files_of_the_host_are_neither_read_nor_written(
    equipment: Equipment, workspace: Workspace
) -> None:
    secret = workspace.root / "secret.smt2"
    secret.write_text("(assert false)", encoding="utf-8")
    written = workspace.root / "written.txt"
    said = error("Prover", workspace, equipment, theorem=f'(include "{secret}")(assert true)')
    assert "failed to open file" in said
    channels = f'(set-option :regular-output-channel "{written}")(echo "x")(assert true)'
    assert "not valid SMT-LIB2" in error("Prover", workspace, equipment, theorem=channels)
    assert not written.exists()


def test_a_theorem_too_long_is_refused(equipment: Equipment, workspace: Workspace) -> None:
    said = error("Prover", workspace, equipment, theorem="(assert true)" * 20_000)
    assert "more than 200000 characters" in said


def test_without_a_jail_it_is_unavailable(equipment: Equipment) -> None:
    assert Prover(PLAIN).check() == PLAIN.no_jail
    assert isinstance(Prover(equipment).check(), Available)
