"""Policies that look for reward without solving tasks, and some that do parts of the work."""

from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from gta_bench.agents.calling import deduplicate_tools
from gta_bench.agents.contract import DecidedStep
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import ReplyTurn
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import FILE_TYPES, ToolSpec
from gta_bench.rl.environment import Observation

# Yields actions; the environment's observation is sent back.
Play = Iterator[DecidedStep]
Policy = Callable[[AtomicTask, Callable[[], Observation]], Play]

WORDS = (
    "yes no true false left right up down red blue green black white yellow male female man woman "
    "cat dog Monday Tuesday January spring summer north south A B C D first second none both"
)
MEME = "This is a humorous meme. It shows a common situation in daily life, which is amusing."


def answer(text: str) -> Policy:
    """Answer at once."""
    return lambda task, seen: iter([AnswerStep(content=text)])


def fill(spec: ToolSpec, task: AtomicTask) -> dict[str, JsonValue]:
    """Arguments of the right types: the first file, the request, or 1."""
    file = task.attachments[0].path if task.attachments else "inputs/image.jpg"
    filled: dict[str, JsonValue] = {}
    for one in spec.inputs:
        if one.name is None or one.optional:
            continue
        words: Mapping[str, JsonValue] = {
            "int": 1,
            "float": 1.0,
            "bool": True,
            "text": task.request,
        }
        filled[one.name] = file if one.type in FILE_TYPES else words[one.type]
    return filled


def gold(task: AtomicTask) -> list[DecidedStep]:
    return list(reference_steps(task))


def gold_calls(task: AtomicTask) -> list[CallStep]:
    return [step for step in reference_steps(task) if isinstance(step, CallStep)]


def replies(seen: Observation) -> str:
    turns = seen.history.turns
    return "\n".join(turn.content for turn in turns if isinstance(turn, ReplyTurn))


def silence(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield MalformedStep(content="", reason="the reply is empty")


def nonsense(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield CallStep(name="nope", arguments={})


def nonsense_twice(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield CallStep(name="nope", arguments={})
    yield CallStep(name="nope", arguments={})
    yield AnswerStep(content="x")


def first_tool_empty(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield CallStep(name=task.tools[0].name, arguments={})
    yield CallStep(name=task.tools[0].name, arguments={})
    yield AnswerStep(content="x")


def right_names_empty(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield from (CallStep(name=call.name, arguments={}) for call in gold_calls(task))
    yield AnswerStep(content="x")


def right_names_filled(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    for call in gold_calls(task):
        yield CallStep(name=call.name, arguments=fill(task.offered[call.name], task))
    yield AnswerStep(content="x")


def not_offered(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    name = next(one for one in ("Calculator", "OCR", "Plot") if one not in task.offered)
    arguments = {"Calculator": {"expression": "1+1"}, "Plot": {"command": "1"}}
    for _ in range(2):
        yield CallStep(name=name, arguments=arguments.get(name, {"image": "inputs/image.jpg"}))
    yield AnswerStep(content="x")


def repeated_call(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    spec = task.tools[0]
    yield from (CallStep(name=spec.name, arguments=fill(spec, task)) for _ in range(9))
    yield AnswerStep(content="x")


def every_tool(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    for spec in deduplicate_tools(task.tools)[:9]:
        yield CallStep(name=spec.name, arguments=fill(spec, task))
    yield AnswerStep(content="x")


def every_tool_copied(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    for spec in deduplicate_tools(task.tools)[:9]:
        yield CallStep(name=spec.name, arguments=fill(spec, task))
    yield AnswerStep(content=replies(seen()) or "x")


def request_copied(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield AnswerStep(content=task.request)


def request_repeated(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield AnswerStep(content="\n".join([task.request] * 5))


def request_and_numbers(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield AnswerStep(content=f"{task.request} {NUMBERS[:300]}")


def request_and_few(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield AnswerStep(content=f"{task.request} = 1, 2 or 3")


def tool_names(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield AnswerStep(content=", ".join(task.offered))


NUMBERS = " ".join(map(str, range(2000)))
TIMES = " = ".join(f"{n}:{n + 1}:{n + 2}" for n in range(0, 36, 3))
GAMING: Mapping[str, Policy] = {
    "one call `nope({})`": nonsense,
    "two calls `nope({})`, answer x": nonsense_twice,
    "first tool with `{}` twice, x": first_tool_empty,
    "right names with `{}`, x": right_names_empty,
    "right names, arguments by type, x": right_names_filled,
    "a tool that is not offered twice, x": not_offered,
    "the first tool nine times, x": repeated_call,
    "every offered tool, x": every_tool,
    "answer x": answer("x"),
    "answer 1": answer("1"),
    "answer 1, 2 or 3": answer("1, 2 or 3"),
    "answer 0 = 1 = … = 11": answer(" = ".join(map(str, range(12)))),
    "answer 0:1:2 = 3:4:5 = … = 33:34:35": answer(TIMES),
    "answer 0 1 2 … 1999": answer(NUMBERS),
    "answer of 20 frequent words": answer(" ".join(WORDS.split()[:20])),
    "answer of 40 frequent words": answer(WORDS),
    "answer is the request": request_copied,
    "answer is the request five times": request_repeated,
    "answer is the request and 0 1 2 …": request_and_numbers,
    "answer is the request = 1, 2 or 3": request_and_few,
    "answer is the names of the tools": tool_names,
    "answer about any meme": answer(MEME),
    "answer The image is saved.": answer("The image is saved."),
}


# Right by luck: no other constant answers more tasks.
GUESS: Mapping[str, Policy] = {"answer 2": answer("2")}


def play_gold(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield from gold(task)


def gold_calls_only(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield from gold_calls(task)
    yield AnswerStep(content="x")


def gold_after_useless(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield CallStep(name="nope", arguments={})
    yield from gold(task)


def gold_swapped(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    first, second, *others = gold(task)
    yield from ([second, first, *others] if isinstance(second, CallStep) else [first, second])


def right_at_once(task: AtomicTask, seen: Callable[[], Observation]) -> Play:
    yield gold(task)[-1]


PARTIAL: Mapping[str, Policy] = {
    "reference": play_gold,
    "reference after a useless call": gold_after_useless,
    "reference, first two calls swapped": gold_swapped,
    "reference's last step at once": right_at_once,
    "reference's calls, answer x": gold_calls_only,
    "every offered tool, answer is all replies": every_tool_copied,
}
