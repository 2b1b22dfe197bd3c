"""The spans of one trace as an observed trace: request, tools, calls with replies, answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from gta_bench.authoring.traces.dialects import (
    AgentTurn,
    ModelTurn,
    SaidCall,
    SaidMessage,
    SaidReply,
    SpanTurn,
    ToolTurn,
    as_text,
    find_dialect,
    read_arguments,
    read_turn,
)
from gta_bench.authoring.traces.observed import (
    ObservedCall,
    ObservedTool,
    ObservedTrace,
    TraceFormat,
    join_tools,
    make_text,
)
from gta_bench.authoring.traces.spans import CutFinder, ReadSpan
from gta_bench.errors import format_count
from gta_bench.tape.storage import canonical_json

# Spans between a client's call of a tool and its server's.
DEEPEST: Final = 20


class _Request(NamedTuple):
    """The first message of the user, and how many there are."""

    text: str | None
    turns: int
    is_cut: bool
    message: SaidMessage | None = None


def observe_spans(name: str, spans: Sequence[ReadSpan]) -> ObservedTrace | None:
    """Return what the spans of a trace show; None if none of them is of an agent."""
    cuts = CutFinder(spans)
    turns = [turn for span in spans if (turn := _read(span, cuts)) is not None]
    turns = _drop_doubles(turns, {span.id: span for span in spans})
    if not turns:
        return None
    models = [turn for turn in turns if isinstance(turn, ModelTurn)]
    agents = [turn for turn in turns if isinstance(turn, AgentTurn)]
    if not models and not any(isinstance(turn, ToolTurn) for turn in turns) and not agents:
        return None
    failed = sum(_has_failed(turn) for turn in models)
    models = [turn for turn in models if not _has_failed(turn)]
    dialogue = _Dialogue(models)
    calls = [*_join_calls([turn for turn in turns if isinstance(turn, ToolTurn)], dialogue)]
    request = _find_request(agents, models, cuts)
    tools, notes = join_tools(_list_tools(turns), calls)
    system = [one.text for turn in models[:1] for one in turn.given if one.role == "system"]
    return ObservedTrace(
        id=name,
        format=_name_format(turns),
        request=request.text,
        is_cut=request.is_cut,
        turns=request.turns,
        system="\n\n".join(system) or None,
        answer=_find_answer(agents, models),
        tools=tools,
        calls=tuple(calls),
        files=tuple(request.message.files) if request.message is not None else (),
        is_ours=any("gta.task" in span.attributes for span in spans),
        notes=(*notes, *_describe_losses(turns, models, failed, cuts)),
    )


def _has_failed(turn: ModelTurn) -> bool:
    """Whether a model was asked in vain; the agent has probably asked again."""
    return turn.span.error is not None and not turn.said


def _read(span: ReadSpan, cuts: CutFinder) -> SpanTurn | None:
    return None if find_dialect(span) is None else read_turn(span, cuts)


def _drop_doubles(turns: Sequence[SpanTurn], spans: Mapping[str, ReadSpan]) -> list[SpanTurn]:
    """Leave out spans of tools below a span of the same tool: a client's and its server's."""
    tools = {turn.span.id: turn.tool.name for turn in turns if isinstance(turn, ToolTurn)}

    def is_inner(turn: SpanTurn) -> bool:
        if not isinstance(turn, ToolTurn):
            return False
        above, steps = turn.span.parent, 0
        while above in spans and steps < DEEPEST:
            if tools.get(above) == turn.tool.name:
                return True
            above, steps = spans[above].parent, steps + 1
        return False

    return [turn for turn in turns if not is_inner(turn)]


def _name_format(turns: Sequence[SpanTurn]) -> TraceFormat:
    kinds = {find_dialect(turn.span) for turn in turns}
    return "OpenTelemetry GenAI" if "OpenTelemetry GenAI" in kinds else "OpenInference"


def _list_tools(turns: Iterable[SpanTurn]) -> Iterator[ObservedTool]:
    for turn in turns:
        if isinstance(turn, ToolTurn):
            yield turn.tool
        else:
            yield from turn.tools


def _find_request(
    agents: Sequence[AgentTurn], models: Sequence[ModelTurn], cuts: CutFinder
) -> _Request:
    """Find what the user asked: of the outermost agent, else of the first call of a model."""
    first: list[AgentTurn | ModelTurn] = [*agents[:1], *models[:1]]
    for turn in first:
        users = [one for one in turn.given if one.role == "user" and one.text.strip()]
        if users:
            later = models if isinstance(turn, ModelTurn) else ()
            counts = [sum(one.role == "user" for one in other.given) for other in later]
            turns = max([len(users), *counts])
            return _Request(users[0].text, turns, cuts.is_cut(users[0].text), users[0])
    for agent in agents:
        if agent.input is not None and agent.input[:1] not in ("{", "["):
            return _Request(agent.input, 1, cuts.is_cut(agent.input))
    return _Request(None, 0, is_cut=False)


def _find_answer(agents: Sequence[AgentTurn], models: Sequence[ModelTurn]) -> str | None:
    said = [one.text for turn in agents[:1] for one in turn.said if one.text]
    last = [one for turn in models[-1:] for one in turn.said if not one.calls and one.text]
    output = agents[0].output if agents else None
    return next(iter([*said[-1:], *(one.text for one in last[-1:])]), output)


def _describe_losses(
    turns: Sequence[SpanTurn],
    models: Sequence[ModelTurn],
    failed: int,
    cuts: CutFinder,
) -> Iterator[str]:
    silent = sum(not turn.has_content for turn in models)
    if silent:
        yield (
            f"{format_count(silent, 'call')} of a model without messages: record the trace again "
            "with the capture of content turned on."
        )
    if failed:
        yield f"{format_count(failed, 'call')} of a model failed and got no reply."
    cut = sum(turn.is_cut for turn in turns)
    if cut:
        limit = "" if cuts.limit is None else f" at {cuts.limit} characters"
        yield f"{format_count(cut, 'span')} with values that were probably cut{limit}."
    dropped = sum(turn.span.dropped for turn in turns)
    if dropped:
        yield f"{format_count(dropped, 'attribute')} of spans were dropped before the export."
    agents = sum(isinstance(turn, AgentTurn) and bool(turn.given or turn.said) for turn in turns)
    if agents > 1:
        yield f"{format_count(agents, 'agent')} worked in this trace; calls are those of all."


class _Dialogue:
    """The calls and replies that the messages of a trace have, each once.

    Every call of a model repeats the dialogue before it. Calls count where a model asks for them,
    and those in later histories; what the first history has was done before this trace.
    """

    def __init__(self, models: Sequence[ModelTurn]) -> None:
        before = {
            call.id for turn in models[:1] for one in turn.given for call in one.calls if call.id
        }
        self.calls: list[SaidCall] = []
        known = set(before)
        for turn in models:
            history = [call for one in turn.given for call in one.calls if call.id]
            for call in [*history, *(call for one in turn.said for call in one.calls)]:
                if call.id is None or call.id not in known:
                    self.calls.append(call)
                    known.add(call.id or "")
        said = [one for turn in models for message in turn.given for one in message.replies]
        self._by_id = {one.id: one for one in said if one.id is not None}
        self._in_order = self._match_by_order(models)

    def _match_by_order(self, models: Sequence[ModelTurn]) -> dict[int, SaidReply]:
        """Match calls and replies without ids by their order, if there are as many of both."""
        longest = max(models, key=lambda turn: len(turn.given), default=None)
        if longest is None:
            return {}
        replies = [one for message in longest.given for one in message.replies if one.id is None]
        calls = [place for place, call in enumerate(self.calls) if call.id is None]
        return dict(zip(calls, replies, strict=True)) if len(calls) == len(replies) else {}

    def find_reply(self, place: int) -> SaidReply | None:
        """Return the reply to the call at this place."""
        name = self.calls[place].id
        return self._in_order.get(place) if name is None else self._by_id.get(name)


def _join_calls(tools: Sequence[ToolTurn], dialogue: _Dialogue) -> Iterator[ObservedCall]:
    """Yield the calls in the order in which tools ran, then those that no span of a tool has."""
    left = _Unmatched(dialogue.calls)
    for turn in tools:
        place = left.take(turn)
        asked = None if place is None else dialogue.calls[place]
        reply = None if place is None else dialogue.find_reply(place)
        yield _join_call(turn, asked, reply)
    for place in left.places:
        asked, reply = dialogue.calls[place], dialogue.find_reply(place)
        text = None if reply is None else reply.text
        if asked.name:
            yield ObservedCall(
                tool=asked.name,
                arguments=read_arguments(asked.arguments),
                reply=None if text is None else make_text(text),
            )


class _Unmatched:
    """The calls of messages that no span of a tool has been matched with yet."""

    def __init__(self, calls: Sequence[SaidCall]) -> None:
        self.places = dict.fromkeys(range(len(calls)))
        self._calls = calls
        self._by_id = {call.id: place for place, call in enumerate(calls) if call.id is not None}
        self._by_name: dict[str, dict[int, None]] = {}
        for place, call in enumerate(calls):
            self._by_name.setdefault(call.name, {})[place] = None

    def take(self, turn: ToolTurn) -> int | None:
        """Find the message that asked for a call: by its id, else by its tool and arguments."""
        place = self._find(turn)
        if place is not None:
            del self.places[place]
            self._by_name[self._calls[place].name].pop(place)
        return place

    def _find(self, turn: ToolTurn) -> int | None:
        if turn.id is not None:
            place = self._by_id.get(turn.id)
            return place if place in self.places else None
        same = self._by_name.get(turn.tool.name, {})
        given = read_arguments(turn.arguments)
        if given is not None:
            equal = (one for one in same if _is_equal(given, self._calls[one].arguments))
            return next(equal, None)
        # Without arguments, two calls of a tool can be confused.
        return next(iter(same)) if len(same) == 1 else None


def _is_equal(given: dict[str, JsonValue], said: JsonValue) -> bool:
    other = read_arguments(said)
    return other is not None and canonical_json(given) == canonical_json(other)


def _join_call(turn: ToolTurn, asked: SaidCall | None, reply: SaidReply | None) -> ObservedCall:
    """Join what the span and the messages have; a text that was cut is left out."""
    arguments = read_arguments(turn.arguments)
    if arguments is None and asked is not None:
        arguments = read_arguments(asked.arguments)
    # The message is what the agent saw; a span may have it in another form.
    text = None if reply is None else reply.text
    if text is None and not turn.is_cut:
        text = as_text(turn.result)
    if turn.span.error is not None:
        error = text or turn.span.error
        return ObservedCall(tool=turn.tool.name, arguments=arguments, error=error)
    found = None if text is None else make_text(text)
    return ObservedCall(tool=turn.tool.name, arguments=arguments, reply=found)
