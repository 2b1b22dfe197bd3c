"""Sound and film that the forge makes: flite speaks and ffmpeg encodes, both in the jail."""

import array
import asyncio
import io
import wave
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import Final, Literal, NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.confine.probe import find_jail
from gta_bench.errors import EnvironmentProblem
from gta_bench.forge.draft import TaskDice

Voice = Literal["slt", "rms"]
RATE: Final = 16_000
LIMITS: Final = JailLimits(wall_seconds=120.0, cpu_seconds=60, memory_bytes=3072 * MIB)
# One thread and no names of versions, so that the same input gives the same bytes.
EXACT: Final = ("-threads", "1", "-fflags", "+bitexact", "-flags", "+bitexact")
FRAMES: Final = 10  # a second
QUIET: Final = 300  # of 32,768: below it, a voice pauses
# Words that our speech model hears when flite says them.
TOPICS: Final = (
    "library", "museum", "garden", "kitchen", "bridge", "station", "market", "hospital",
    "airport", "theater", "school", "river", "factory", "hotel", "bakery", "stadium",
)  # fmt: skip
THINGS: Final = (
    "tickets", "umbrellas", "cameras", "sandwiches", "blankets", "passports", "pencils",
    "bottles", "jackets", "batteries", "candles", "baskets",
)  # fmt: skip
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SENTENCES: Final = (
    "Here is some news about the {topic}. The {topic} will be open on {day}. "
    "Please bring your {thing} with you.",
    "This message is about the {topic}. The {topic} will be closed on {day}. "
    "Please do not forget your {thing}.",
)


class Notice(NamedTuple):
    """A spoken notice: the words that tell it from others, and its sound."""

    topic: str
    day: str
    thing: str
    sound: "Sound"

    @property
    def words(self) -> list[str]:
        """The words that a listener must hear."""
        return [self.topic, self.day, self.thing]


class Sound(NamedTuple):
    """Samples of 16 bits at `RATE`, one channel."""

    samples: "array.array[int]"

    @property
    def seconds(self) -> float:
        """The length."""
        return len(self.samples) / RATE

    def cut(self, start: float, end: float) -> "Sound":
        """Return the part between two times."""
        return Sound(self.samples[round(start * RATE) : round(end * RATE)])

    def encode(self) -> bytes:
        """Return it as WAV."""
        data = io.BytesIO()
        with wave.open(data, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(self.samples.tobytes())
        return data.getvalue()


def join_sounds(sounds: Sequence[Sound]) -> Sound:
    """Return sounds one after the other."""
    joined = array.array("h")
    for one in sounds:
        joined.extend(one.samples)
    return Sound(joined)


def keep_silent(seconds: float) -> Sound:
    """Return silence."""
    return Sound(array.array("h", bytes(2 * round(seconds * RATE))))


@lru_cache(64)
def speak(words: str, voice: Voice) -> Sound:
    """Return words as flite speaks them, from the first sound to the last."""
    made = run_program(["flite", "-voice", voice, "-t", words, "-o", "said.wav"])
    with wave.open(io.BytesIO(made["said.wav"])) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise EnvironmentProblem(f"flite's voice {voice} does not speak at {RATE} Hz.")
        samples = array.array("h", file.readframes(file.getnframes()))
    loud = [at for at, one in enumerate(samples) if abs(one) > QUIET]
    return Sound(samples[loud[0] : loud[-1] + 1])


def draw_notices(dice: TaskDice, count: int) -> list[Notice]:
    """Return notices in one voice, each about another place and another thing."""
    voice: Voice = dice.choice(("slt", "rms"))
    sentence = dice.choice(SENTENCES)
    topics, things = dice.sample(TOPICS, count), dice.sample(THINGS, count)
    days = dice.sample(DAYS, min(count, len(DAYS)))
    notices = []
    for number, (topic, thing) in enumerate(zip(topics, things, strict=True)):
        day = days[number % len(days)]
        words = sentence.format(topic=topic, day=day, thing=thing)
        notices.append(Notice(topic, day, thing, speak(words, voice)))
    return notices


def run_ffmpeg(arguments: Sequence[str], inputs: Mapping[str, bytes], output: str) -> bytes:
    """Return the file that ffmpeg makes; inputs are named `../inputs/NAME`."""
    quiet = ("ffmpeg", "-v", "error", "-nostdin", "-y")
    return run_program([*quiet, *arguments, *EXACT, output], inputs)[output]


def encode_mp3(sound: Sound) -> bytes:
    """Return a sound as MP3."""
    arguments = ("-i", "../inputs/sound.wav", "-c:a", "libmp3lame", "-b:a", "64k")
    return run_ffmpeg(arguments, {"sound.wav": sound.encode()}, "made.mp3")


class Card(NamedTuple):
    """A still picture (PNG) and how long a film shows it."""

    picture: bytes
    seconds: float


def encode_film(cards: Sequence[Card], sound: Sound | None) -> bytes:
    """Return cards one after the other as MP4, with a sound."""
    inputs = {f"{number}.png": card.picture for number, card in enumerate(cards)}
    arguments: list[str] = []
    for number, card in enumerate(cards):
        show = ("-framerate", str(FRAMES), "-loop", "1", "-t", f"{card.seconds:.2f}")
        arguments += [*show, "-i", f"../inputs/{number}.png"]
    if sound is not None:
        inputs["sound.wav"] = sound.encode()
        arguments += ["-i", "../inputs/sound.wav"]
    shown = "".join(f"[{number}:v]" for number in range(len(cards)))
    chain = f"{shown}concat=n={len(cards)}:v=1:a=0,format=yuv420p[film]"
    arguments += ["-filter_complex", chain, "-map", "[film]", "-c:v", "libx264"]
    arguments += ["-preset", "veryfast", "-crf", "23"]
    if sound is not None:
        arguments += ["-map", f"{len(cards)}:a", "-c:a", "aac", "-b:a", "64k"]
    return run_ffmpeg(arguments, inputs, "made.mp4")


def cut_film(film: bytes, start: float, seconds: float) -> bytes:
    """Return a part of a film, encoded again so that it begins at the exact frame."""
    span = ("-ss", f"{start:.2f}", "-i", "../inputs/film.mp4", "-t", f"{seconds:.2f}")
    codecs = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-c:a", "aac", "-b:a", "64k")
    return run_ffmpeg((*span, *codecs), {"film.mp4": film}, "made.mp4")


def run_program(argv: Sequence[str], inputs: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Return the files that a program leaves; raise EnvironmentProblem if it fails."""
    # In a thread of its own, because the caller may have an event loop already.
    with ThreadPoolExecutor(1) as thread:
        work = _open_jail().run_program(argv, inputs=inputs, limits=LIMITS)
        ran = thread.submit(asyncio.run, work).result()
    if not ran.succeeded:
        said = ran.stderr.decode("utf-8", "replace").strip()[-300:]
        raise EnvironmentProblem(f"{argv[0]} failed: {said or 'no message'}")
    return ran.files


@cache
def _open_jail() -> Jail:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, find_jail(slots=1)).result()
