import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.content.media import Choice, choose_evenly, parse_probe, parse_times
from gta_bench.errors import ToolError


@pytest.mark.parametrize(
    ("times", "wanted", "chosen"),
    [
        ([], 8, []),
        ([0.0], 8, [0]),
        ([0.0, 1.0], 0, []),
        ([0.0, 1.0, 2.0], 1, [0]),
        ([0.0, 1.0, 2.0], 2, [0, 2]),
        ([0.0, 1.0, 2.0], 9, [0, 1, 2]),
        ([0.0, 0.1, 0.2, 9.0, 10.0], 3, [0, 3, 4]),  # by time and not by number
        ([5.0, 6.0, 7.0, 8.0, 9.0], 3, [0, 2, 4]),
    ],
)
def test_frames_are_chosen_at_even_times(
    times: list[float], wanted: int, chosen: list[int]
) -> None:
    assert choose_evenly(times, wanted) == chosen


@given(st.sets(st.floats(0, 1e5), min_size=2, max_size=60), st.integers(2, 40))
def test_first_and_last_are_always_chosen_and_the_order_is_kept(
    times: set[float], wanted: int
) -> None:
    ordered = sorted(times)
    chosen = choose_evenly(ordered, wanted)
    assert (chosen[0], chosen[-1]) == (0, len(ordered) - 1)
    assert chosen == sorted(set(chosen))
    assert len(chosen) <= wanted


@given(st.sets(st.integers(0, 10_000), min_size=1, max_size=30), st.floats(-5, 5))
def test_the_window_of_a_frame_holds_that_frame_alone(times: set[int], start: float) -> None:
    ordered = [time / 100 for time in sorted(times)]
    choice = Choice(ordered, range(len(ordered)), start)
    for place, _ in enumerate(ordered):
        low, high = choice.before(place), choice.after(place)
        if place:
            inside = [time for time in ordered if low <= time - start <= high]
            assert inside == [ordered[place]]


def test_a_long_film_is_not_decoded_whole() -> None:
    hour = [number / 25 for number in range(90_000)]
    assert not Choice(hour, choose_evenly(hour, 8), 0.0).is_dense(pixels=1)
    short = hour[:300]
    assert Choice(short, choose_evenly(short, 8), 0.0).is_dense(pixels=1920 * 1080)
    assert not Choice(short, choose_evenly(short, 8), 0.0).is_dense(pixels=7680 * 4320)
    assert not Choice([], [], 0.0).is_dense(pixels=1)


def test_times_are_ordered_and_dropped_packets_left_out() -> None:
    lines = b"0.080000,__\n0.000000,K_\n0.040000,__\n-0.040000,_D\nN/A,__\n0.040000,__\n"
    assert parse_times(lines) == (0.0, 0.04, 0.08)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"", "cannot be read"),
        (b"{}", "neither video nor audio"),
        (b'{"streams": [{"codec_type": "subtitle"}]}', "neither video nor audio"),
        (b'{"streams": [{"codec_type": "video", "width": "wide"}]}', "cannot be read"),
    ],
)
def test_a_reply_without_streams_is_refused(reply: bytes, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        parse_probe(reply)


@pytest.mark.parametrize("length", ["N/A", "nan", "inf", ""])
def test_a_length_that_is_no_number_is_unknown(length: str) -> None:
    reply = f'{{"format": {{"duration": "{length}"}}, "streams": [{{"codec_type": "audio"}}]}}'
    info = parse_probe(reply.encode())
    assert info.seconds is None


def test_a_cover_picture_is_no_film() -> None:
    reply = b"""{"streams": [{"codec_type": "audio", "sample_rate": "44100", "channels": 2},
                 {"codec_type": "video", "disposition": {"attached_pic": 1}}]}"""
    info = parse_probe(reply)
    assert info.video is None
    assert info.audio is not None
    assert (info.audio.sample_rate, info.audio.channels) == (44100, 2)
