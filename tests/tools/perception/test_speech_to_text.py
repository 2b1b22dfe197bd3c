import re
import subprocess
import wave
from pathlib import Path

import numpy as np
import pytest

from gta_bench.confine.jail import Jail
from gta_bench.errors import FetchError, ToolError, ToolUnavailable
from gta_bench.settings import EndpointSettings, Settings, ToolSettings
from gta_bench.tools.contract import Available, Equipment, Unavailable
from gta_bench.tools.toolbox import Toolbox
from tests.needs import needs
from tests.tools.media_files import call, ffmpeg, make_stereo, workspace_of
from tests.tools.media_server import Script, said, serving
from tests.tools.media_weights import fetch_moonshine, fetch_speech

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

BECKETT = "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def word_error_rate(heard: str, spoken: str) -> float:
    """Words to change, add or drop, over the words that were spoken."""
    reference, guess = words(spoken), words(heard)
    costs = list(range(len(guess) + 1))
    for row, word in enumerate(reference, start=1):
        before, costs[0] = costs[0], row
        for column, other in enumerate(guess, start=1):
            change = before + (word != other)
            before = costs[column]
            costs[column] = min(change, costs[column] + 1, costs[column - 1] + 1)
    return costs[-1] / len(reference)


def test_the_error_rate_counts_changed_missing_and_added_words() -> None:
    assert word_error_rate("a b c", "a b c") == 0
    assert word_error_rate("a x c", "a b c") == pytest.approx(1 / 3)
    assert word_error_rate("a c", "a b c") == pytest.approx(1 / 3)
    assert word_error_rate("a b b c", "a b c") == pytest.approx(1 / 3)


@pytest.fixture(scope="module")
def weights() -> Path:
    try:
        return fetch_moonshine()
    except FetchError as exc:
        pytest.skip(f"Moonshine's weights cannot be fetched here: {exc}")


@pytest.fixture
def box(jail: Jail, weights: Path) -> Toolbox:
    return Toolbox(Equipment(Settings(), jail=jail, weights=weights))


def speech(weights: Path) -> Path:
    return fetch_speech()


@pytest.mark.slow
@needs("ffmpeg")
def test_human_speech_is_understood(box: Toolbox, tmp_path: Path, weights: Path) -> None:
    result = call(box, workspace_of(tmp_path, speech(weights)), "SpeechToText", audio="beckett.wav")
    assert word_error_rate(result.text, BECKETT) <= 0.1
    assert result.backend.startswith("Moonshine tiny int8 (English), onnxruntime ")


@pytest.mark.slow
@needs("ffmpeg")
def test_stereo_at_another_rate_in_another_format_is_understood(
    box: Toolbox, tmp_path: Path, weights: Path
) -> None:
    """Upstream glued the left channel and the right one together, one after the other."""
    file = tmp_path / "speech.mp3"
    ffmpeg("-i", str(speech(weights)), "-ac", "2", "-ar", "44100", "-b:a", "128k", str(file))
    result = call(box, workspace_of(tmp_path, file), "SpeechToText", audio="speech.mp3")
    assert word_error_rate(result.text, BECKETT) <= 0.1


@pytest.mark.slow
@needs("ffmpeg")
@pytest.mark.parametrize("pause", [0.0, 0.5, 2.0])
def test_three_minutes_are_heard_to_the_end(
    box: Toolbox, tmp_path: Path, weights: Path, pause: float
) -> None:
    """After half a second of nothing the int8 weights heard nothing any more, 11 times of 17."""
    with wave.open(str(speech(weights))) as original:
        frames = original.readframes(original.getnframes())
    times = int(180 / (len(frames) / 32_000 + pause)) + 1
    file = tmp_path / "long.wav"
    with wave.open(str(file), "wb") as long:
        long.setparams((1, 2, 16_000, 0, "NONE", ""))
        long.writeframes((frames + bytes(int(pause * 16_000) * 2)) * times)
    result = call(box, workspace_of(tmp_path, file), "SpeechToText", audio="long.wav")
    assert word_error_rate(result.text, " ".join([BECKETT] * times)) <= 0.1


@pytest.mark.slow
@needs("ffmpeg", "flite")
def test_a_machine_voice_is_understood(box: Toolbox, tmp_path: Path) -> None:
    text = "Our meeting begins at nine and ends at noon. It was the best of times."
    file = tmp_path / "voice.wav"
    subprocess.run(["flite", "-voice", "slt", "-t", text, "-o", str(file)], check=True)
    result = call(box, workspace_of(tmp_path, file), "SpeechToText", audio="voice.wav")
    assert word_error_rate(result.text, text) <= 0.1


@pytest.mark.slow
@needs("ffmpeg")
@pytest.mark.parametrize(
    "source",
    ["anullsrc=d=5", "sine=440:d=5", "anoisesrc=d=5:a=0.1:seed=1", "anullsrc=d=0.02"],
)
def test_where_nobody_speaks_no_words_are_made_up(
    box: Toolbox, tmp_path: Path, source: str
) -> None:
    file = tmp_path / "quiet.wav"
    ffmpeg("-f", "lavfi", "-i", source, str(file))
    result = call(box, workspace_of(tmp_path, file), "SpeechToText", audio="quiet.wav")
    assert result.text == "No speech was found."


def test_long_pauses_are_shortened_and_short_ones_stay() -> None:
    from gta_bench.tools.media.moonshine import RATE, shorten_pauses

    rng = np.random.default_rng(1)
    loud, quiet = (rng.normal(0, level, RATE).astype(np.float32) for level in (0.1, 0.002))
    pause = quiet[: RATE // 4]
    speech = np.concatenate([loud, pause, loud, *[quiet] * 5, loud])
    assert shorten_pauses(speech).size / RATE == pytest.approx(3.25 + 0.4, abs=0.05)
    for untouched in (quiet, loud, np.zeros(RATE, np.float32), loud[:100], loud[:0]):
        assert np.array_equal(shorten_pauses(untouched), untouched)


def test_long_sound_is_cut_where_it_is_quietest() -> None:
    from gta_bench.tools.media.moonshine import RATE, split

    rng = np.random.default_rng(1)
    wave_form = rng.normal(0, 0.1, 60 * RATE).astype(np.float32)
    for pause in (11, 23, 35, 47):
        wave_form[pause * RATE : pause * RATE + RATE // 2] = 0
    parts = list(split(wave_form))
    assert np.array_equal(np.concatenate(parts), wave_form)
    assert [round(part.size / RATE) for part in parts] == [11, 12, 12, 12, 13]


@needs("ffmpeg")
def test_without_weights_it_says_how_to_get_them(jail: Jail, tmp_path: Path) -> None:
    box = Toolbox(Equipment(Settings(), jail=jail, weights=tmp_path))
    state = box.availability("SpeechToText")
    assert isinstance(state, Unavailable)
    assert state.reason == "The weights of Moonshine tiny are not here."
    assert "gta tools fetch" in state.fix
    workspace = workspace_of(tmp_path, make_stereo(tmp_path / "tones.wav", seconds=0.1))
    with pytest.raises(ToolUnavailable, match="weights of Moonshine"):
        call(box, workspace, "SpeechToText", audio="tones.wav")


def endpoint_box(jail: Jail, url: str, *, key: str | None = "k-1") -> Toolbox:
    settings = Settings(
        endpoints={"speech": EndpointSettings(url=url, model="whisper-9", key_env="SPEECH_KEY")},
        tools={"SpeechToText": ToolSettings(endpoint="speech")},
    )
    return Toolbox(Equipment(settings, jail=jail, key={"SPEECH_KEY": key}.get))


@needs("ffmpeg")
def test_an_endpoint_gets_the_sound_as_mono_wav_and_its_key(
    loopback: None, jail: Jail, tmp_path: Path
) -> None:
    script = Script({"POST /v1/audio/transcriptions": [said({"text": " Hello. "})]})
    workspace = workspace_of(tmp_path, make_stereo(tmp_path / "tones.mp3", seconds=1))
    with serving(script) as url:
        result = call(endpoint_box(jail, url), workspace, "SpeechToText", audio="tones.mp3")
    assert result.text == "Hello."
    assert re.fullmatch(r"whisper-9 at 127.0.0.1:\d+ \(endpoint speech\)", result.backend)
    assert script.keys == {"Bearer k-1"}
    ((_, body),) = script.asked
    assert b'name="model"\r\n\r\nwhisper-9' in body
    sound = body[body.index(b"RIFF") :]
    assert (sound[22:24], sound[24:28]) == (b"\x01\x00", (16_000).to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (
            (400, b"no sound k-1"),
            "rejected the request (status 400). The server's message: no sound ***",
        ),
        ((200, b"<html>"), "Endpoint 'speech' sent a malformed reply"),
        (said({"words": []}), "sent a malformed reply: text: missing"),
    ],
)
@needs("ffmpeg")
def test_an_endpoint_that_fails_is_an_error_and_no_transcript(
    loopback: None, jail: Jail, tmp_path: Path, reply: tuple[int, bytes], told: str
) -> None:
    script = Script({"POST /v1/audio/transcriptions": [reply]})
    workspace = workspace_of(tmp_path, make_stereo(tmp_path / "tones.wav", seconds=0.1))
    with serving(script) as url, pytest.raises(ToolError, match=re.escape(told)) as caught:
        call(endpoint_box(jail, url), workspace, "SpeechToText", audio="tones.wav")
    assert "k-1" not in str(caught.value)


def test_a_missing_key_is_told_before_any_call(jail: Jail) -> None:
    state = endpoint_box(jail, "http://127.0.0.1:9/v1", key=None).availability("SpeechToText")
    assert state == Unavailable("SPEECH_KEY is not set.", "export SPEECH_KEY=…")
    ready = endpoint_box(jail, "http://127.0.0.1:9/v1").availability("SpeechToText")
    assert ready == Available("whisper-9 at 127.0.0.1:9 (endpoint speech)")
