import asyncio
import math
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pydantic_monty")

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import CallTurn, ReplyTurn
from gta_bench.tools.contract import Available
from gta_bench.tools.logic.calculator import Calculator, CalculatorInput
from gta_bench.tools.logic.expressions import Evaluator
from tests.tools.calling import PLAIN, call, error

# Replies of the dataset that its authors typed by hand.
TYPED_BY_HAND = [2, 21, 25, 26, 27, 52, 53, 91, 101, 104, 107, 110, 193, 204]

evaluator = Evaluator(processes=2)


def gold_calls(tasks: Mapping[str, AtomicTask]) -> list[tuple[str, str, str]]:
    """Task, expression and recorded reply of every reference call."""
    found = []
    for task in tasks.values():
        for turn, reply in zip(task.dialogue, task.dialogue[1:], strict=False):
            if isinstance(turn, CallTurn) and turn.call.name == "Calculator":
                assert isinstance(reply, ReplyTurn)
                found.append((task.id, str(turn.call.arguments["expression"]), reply.content))
    return found


def cpython(expression: str) -> str:
    names = {**vars(math), "math": math, "pow": pow}
    return str(eval(expression, names))


class TestGold:
    def test_all_reference_expressions_give_cpythons_text(
        self, atomic_tasks: Mapping[str, AtomicTask]
    ) -> None:
        calls = gold_calls(atomic_tasks)
        equal = [evaluator.evaluate(source) == cpython(source.strip()) for _, source, _ in calls]
        assert (sum(equal), len(equal)) == (70, 70)

    def test_recorded_replies_are_equal_but_for_those_typed_by_hand(
        self, atomic_tasks: Mapping[str, AtomicTask]
    ) -> None:
        differing = [
            int(task)
            for task, source, recorded in gold_calls(atomic_tasks)
            if evaluator.evaluate(source) != recorded
        ]
        assert differing == TYPED_BY_HAND


class TestValues:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("1 + 1", "2"),
            (" 7 * 6\n", "42"),
            ("(1 +\n2)", "3"),
            ("0.1 + 0.2", "0.30000000000000004"),
            ("10 / 5", "2.0"),
            ("sqrt(16)", "4.0"),
            ("math.sqrt(2)", "1.4142135623730951"),
            ("math.pi", "3.141592653589793"),
            ("floor(e)", "2"),
            ("pow(2, 10)", "1024"),
            ("math.pow(2, 10)", "1024.0"),
            ("abs(-3) + int('4') + len([1, 2])", "9"),
            ("sum(x**2 for x in range(4))", "14"),
            ("[x for x in range(3)]", "[0, 1, 2]"),
            ("max({'a': 1, 'b': 3}.values())", "3"),
            ("f'{1234.5:,.2f}'", "1,234.50"),
            ("3 > 2", "True"),
            ("1e400", "inf"),
            ("'数' * 2", "数数"),
            ("1, 2", "(1, 2)"),
            ("round(2.5), round(3.5)", "(2, 4)"),
            ("round(1234, -2)", "1200"),
            ("round(nan, 2)", "nan"),
            ("2**100", "1267650600228229401496703205376"),
        ],
    )
    def test_an_expression_gives_the_text_of_its_value(self, expression: str, value: str) -> None:
        assert evaluator.evaluate(expression) == value

    @given(
        number=st.decimals(min_value=-(10**6), max_value=10**6, places=3),
        digits=st.integers(0, 5),
    )
    def test_numbers_are_rounded_as_cpython_rounds_them(self, number: object, digits: int) -> None:
        """Monty's own `round` gave 2.68 for round(2.675, 2)."""
        expression = f"round({number}, {digits})"
        assert evaluator.evaluate(expression) == cpython(expression)

    @given(a=st.floats(-1e6, 1e6, allow_nan=False), b=st.integers(1, 10**6), c=st.integers(-50, 50))
    def test_arithmetic_agrees_with_cpython(self, a: float, b: int, c: int) -> None:
        expression = f"({a!r}) * {b} / 7 + {c} ** 2 - {b} // 3 % 5 + sqrt({b})"
        assert evaluator.evaluate(expression) == cpython(expression)

    def test_a_long_text_is_cut_and_says_so(self) -> None:
        value = evaluator.evaluate("'x' * 30000")
        assert value.startswith("x" * 20_000)
        assert value.endswith("[The first 20000 of 30000 characters.]")

    def test_what_an_expression_prints_goes_nowhere(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert evaluator.evaluate("print('hello')") == "None"
        assert capfd.readouterr().out == ""

    def test_one_call_sees_nothing_of_another(self) -> None:
        evaluator.evaluate("(secret := 5)")
        with pytest.raises(ToolError, match="NameError"):
            evaluator.evaluate("secret")


class TestHostileInput:
    @pytest.mark.parametrize(
        ("expression", "said"),
        [
            ("9**9**9", "more than 64 MiB"),
            ("().__class__.__base__.__subclasses__()", "has no attribute '__class__'"),
            ("math.factorial(10**7)", "stopped after 1.5 seconds"),
            ("math.comb(10**6, 5*10**5)", "stopped after 1.5 seconds"),
            ("sum(range(10**12))", "stopped after 1.5 seconds"),
            ("[print('x' * 1000) for _ in range(10**9)]", "stopped after 1.5 seconds"),
            ("[0] * 10**9", "more than 64 MiB"),
            ("'a' * 10**10", "more than 64 MiB"),
            ("__import__('os').system('id')", "'__import__' is not defined"),
            ("open('/etc/passwd').read()", "Permission denied"),
            ("(lambda f: f(f))(lambda f: f(f))", "maximum recursion depth"),
            ("2**100000", "4300 digits"),
            ("-" * 9999 + "1", "too deeply nested"),
            ("(" * 9999, "is not a Python expression"),
            ("import os", "is not a Python expression"),
            ("x = 5", "is not a Python expression"),
            ("2 +", "is not a Python expression"),
            ("1\x00", "is not a Python expression"),
            ("'\ud800'", "is not a Python expression"),
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("foo + 1", "name 'foo' is not defined"),
            ("   ", "The expression is empty"),
            ("1+" * 20_000 + "1", "the limit is 20000"),
        ],
    )
    def test_it_is_refused_within_seconds(self, expression: str, said: str) -> None:
        start = time.monotonic()
        with pytest.raises(ToolError) as caught:
            evaluator.evaluate(expression)
        assert time.monotonic() - start < 10
        assert said in str(caught.value)
        assert len(str(caught.value)) < 500

    def test_the_next_call_works(self) -> None:
        assert evaluator.evaluate("6 * 7") == "42"


class TestTool:
    def test_a_call_says_what_ran(self, workspace: Workspace) -> None:
        result = call("Calculator", workspace, expression="6 * 7")
        assert result.text == "42"
        assert result.backend.startswith("pydantic-monty 1.")
        assert result.jail is None

    def test_an_error_names_the_tool_and_the_expression(self, workspace: Workspace) -> None:
        said = error("Calculator", workspace, expression="1 / 0")
        assert said == "Calculator: '1 / 0' failed: ZeroDivisionError: division by zero."

    def test_it_is_available_with_a_version(self) -> None:
        state = Calculator(PLAIN).check()
        assert isinstance(state, Available)
        assert state.backend.startswith("pydantic-monty ")

    def test_slow_expressions_neither_block_the_loop_nor_hold_up_a_sum(
        self, workspace: Workspace
    ) -> None:
        tool = Calculator(PLAIN)

        async def evaluate(expression: str) -> str:
            made = await tool.apply(workspace, CalculatorInput(expression=expression))
            return made.parts[0].content

        async def together() -> float:
            await evaluate("1")
            async with asyncio.TaskGroup() as group:
                slow = [group.create_task(_refused(evaluate("sum(range(10**12))"))) for _ in "ab"]
                await asyncio.sleep(0.1)
                start = time.monotonic()
                assert await evaluate("2 + 2") == "4"
                elapsed = time.monotonic() - start
                assert not any(task.done() for task in slow)
            return elapsed

        assert asyncio.run(together()) < 1.0


async def _refused(call: object) -> None:
    with pytest.raises(ToolError):
        await call  # type: ignore[misc]
