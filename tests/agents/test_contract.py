from gta_bench.agents.contract import (
    History,
    RefusedTurn,
    list_dataset_files,
    make_step_histories,
    merge_replies,
    reply_text,
)
from gta_bench.datasets.model import AtomicDataset
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, UserTurn
from tests.agents.builders import HISTORIES, MENU, TASK


def test_there_is_one_history_per_assistant_turn_holding_what_stands_before_it() -> None:
    assert [len(history.turns) for history in HISTORIES] == [1, 3, 5]
    assert [history.position for history in HISTORIES] == [0, 1, 2]
    assert all(history.task == "7" and history.mode == "step" for history in HISTORIES)
    assert all(history.attachments == (MENU,) for history in HISTORIES)


def test_only_the_last_assistant_turn_is_marked_last() -> None:
    assert [history.last for history in HISTORIES] == [False, False, True]


def test_the_last_turn_is_marked_also_where_it_is_a_call() -> None:
    task = TASK.model_copy(update={"dialogue": TASK.dialogue[:4]})
    assert [history.last for history in make_step_histories(task)] == [False, True]


def test_a_dialogue_without_assistant_turns_has_no_histories() -> None:
    assert make_step_histories(TASK.model_copy(update={"dialogue": TASK.dialogue[:1]})) == ()


def test_thoughts_and_texts_beside_calls_stay_out_of_a_history() -> None:
    for turn in HISTORIES[-1].turns:
        if isinstance(turn, CallTurn):
            assert (turn.thought, turn.content) == (None, None)


def test_an_answer_inside_a_history_keeps_its_text_and_loses_its_thought() -> None:
    dialogue = (*TASK.dialogue, UserTurn(content="And two?"), AnswerTurn(content="14."))
    history = make_step_histories(TASK.model_copy(update={"dialogue": dialogue}))[-1]
    assert AnswerTurn(content="It costs 7.") in history.turns


def test_files_are_the_attachments_and_what_tools_gave_so_far() -> None:
    given = "outputs/dummy_generated_image.jpg"
    assert [history.files for history in HISTORIES] == [
        {"inputs/menu.jpg"},
        {"inputs/menu.jpg"},
        {"inputs/menu.jpg", given},
    ]


def test_a_refused_reply_counts_as_a_decision() -> None:
    refused = RefusedTurn(reply="hm", feedback="Follow the format.")
    history = History(task="7", turns=(UserTurn(content="?"), refused), mode="end-to-end")
    assert history.position == 1


def test_parts_of_one_result_come_together() -> None:
    text = ReplyTurn(tool="T", type="text", content="two files")
    image = ReplyTurn(tool="T", type="image", content="outputs/a.png")
    history = History(task="7", turns=(UserTurn(content="?"), text, image, UserTurn(content="!")))
    merged = merge_replies(history)
    assert merged == [UserTurn(content="?"), (text, image), UserTurn(content="!")]
    assert reply_text((text, image)) == "two files\n[image](outputs/a.png)"


def test_numbers_are_shown_bare_and_every_kind_of_file_as_a_link() -> None:
    assert reply_text((ReplyTurn(tool="T", type="int", content="4"),)) == "4"
    for kind in ("image", "audio", "video", "file"):
        reply = ReplyTurn(tool="T", type=kind, content="outputs/x")
        assert reply_text((reply,)) == f"[{kind}](outputs/x)"


def test_a_history_survives_write_and_read() -> None:
    for history in HISTORIES:
        assert History.model_validate_json(history.model_dump_json()) == history


def test_the_files_of_a_dataset_include_the_placeholder_for_produced_images() -> None:
    assert list_dataset_files([TASK]) == {"inputs/menu.jpg", "outputs/dummy_generated_image.jpg"}


def test_16_last_turns_of_the_dataset_are_calls(atomic: AtomicDataset) -> None:
    calls = [
        task.id
        for task in atomic.tasks.values()
        for history, step in zip(make_step_histories(task), task.steps, strict=True)
        if history.last and isinstance(step, CallTurn)
    ]
    assert len(calls) == 16
