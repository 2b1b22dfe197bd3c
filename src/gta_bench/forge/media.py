"""Sound and film that the forge makes: flite speaks and ffmpeg encodes, both in the jail."""

import array
import io
import shutil
import wave
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, Literal, NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.confine.probe import find_jail
from gta_bench.errors import EnvironmentProblem
from gta_bench.forge.draft import TaskDice
from gta_bench.running.stopping import run_apart

Voice = Literal["slt", "rms"]
RATE: Final = 16_000
LIMITS: Final = JailLimits(wall_seconds=120.0, cpu_seconds=60, memory_bytes=3072 * MIB)
# One thread and no names of versions, so that the same input gives the same bytes.
EXACT: Final = ("-threads", "1", "-fflags", "+bitexact", "-flags", "+bitexact")
H264: Final = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "23")
AAC: Final = ("-c:a", "aac", "-b:a", "64k")
FRAMES: Final = 12  # a second
FADE: Final = 0.4  # seconds in which a scene comes out of the dark
QUIET: Final = 300  # of 32,768: below it, a voice pauses
# Words that our speech model hears when flite says them.
TOPICS: Final = (
    "library", "museum", "station", "market", "hospital", "airport", "theater", "factory", "hotel",
    "bakery",
)  # fmt: skip
THINGS: Final = (
    "tickets", "umbrellas", "cameras", "sandwiches", "pencils", "bottles", "jackets", "batteries",
    "candles",
)  # fmt: skip
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
SENTENCES: Final = (
    "Here is news from the {topic}. It will be open on {day}. Please bring your {thing}.",
    "This is about the {topic}. It will be closed on {day}. Please do not forget your {thing}.",
)


class Notice(NamedTuple):
    """A spoken notice: the words that tell it from others, and its sound."""

    topic: str
    day: str
    thing: str
    sound: "ForgedSound"

    @property
    def words(self) -> list[str]:
        """The words that a listener must hear."""
        return [self.topic, self.day, self.thing]


class ForgedSound(NamedTuple):
    """Samples of 16 bits at `RATE`, one channel."""

    samples: "array.array[int]"

    @property
    def seconds(self) -> float:
        """The length."""
        return len(self.samples) / RATE

    def cut(self, start: float, end: float) -> "ForgedSound":
        """Return the part between two times."""
        return ForgedSound(self.samples[round(start * RATE) : round(end * RATE)])

    def encode(self) -> bytes:
        """Return it as WAV."""
        data = io.BytesIO()
        with wave.open(data, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(self.samples.tobytes())
        return data.getvalue()


def join_sounds(sounds: Sequence[ForgedSound]) -> ForgedSound:
    """Return sounds one after the other."""
    joined = array.array("h")
    for one in sounds:
        joined.extend(one.samples)
    return ForgedSound(joined)


def keep_silent(seconds: float) -> ForgedSound:
    """Return silence."""
    return ForgedSound(array.array("h", bytes(2 * round(seconds * RATE))))


@lru_cache(64)
def speak(words: str, voice: Voice) -> ForgedSound:
    """Return words as flite speaks them, from the first sound to the last."""
    made = run_program(["flite", "-voice", voice, "-t", words, "-o", "said.wav"])
    with wave.open(io.BytesIO(made["said.wav"])) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise EnvironmentProblem(f"flite's voice {voice} does not speak at {RATE} Hz.")
        samples = array.array("h", file.readframes(file.getnframes()))
    loud = [at for at, one in enumerate(samples) if abs(one) > QUIET]
    return ForgedSound(samples[loud[0] : loud[-1] + 1])


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
    one = ("-filter_threads", "1", "-filter_complex_threads", "1")
    start = ("ffmpeg", "-v", "error", "-nostdin", "-y", *one)
    return run_program([*start, *arguments, *EXACT, output], inputs)[output]


def encode_mp3(sound: ForgedSound) -> bytes:
    """Return a sound as MP3."""
    arguments = ("-i", "../inputs/sound.wav", "-c:a", "libmp3lame", "-b:a", "64k")
    return run_ffmpeg(arguments, {"sound.wav": sound.encode()}, "made.mp3")


class Card(NamedTuple):
    """A picture (PNG), clouds that drift across it (a wider PNG), and how long a film shows it."""

    picture: bytes
    clouds: bytes
    seconds: float


def encode_film(
    cards: Sequence[Card], sound: ForgedSound | None, size: tuple[int, int] | None = None
) -> bytes:
    """Return cards one after the other as MP4, with a sound, and scaled if there is a size."""
    inputs: dict[str, bytes] = {}
    arguments: list[str] = []
    chains: list[str] = []
    for number, card in enumerate(cards):
        for layer, picture in enumerate((card.picture, card.clouds)):
            inputs[name := f"{number}-{layer}.png"] = picture
            arguments += ["-threads", "1", "-framerate", str(FRAMES), "-i", f"../inputs/{name}"]
            # Repeated as a frame, because reading the file again for each one takes longer.
            still = f"loop=-1:1,trim=duration={card.seconds:.2f}[{name}]"
            chains.append(f"[{2 * number + layer}:v]{still}")
        drift = f"overlay=x=(W-w)*t/{card.seconds:.2f}:y=0,fade=t=in:d={FADE}"
        chains.append(f"[{number}-0.png][{number}-1.png]{drift}[part{number}]")
    if sound is not None:
        inputs["sound.wav"] = sound.encode()
        arguments += ["-i", "../inputs/sound.wav"]
    shown = "".join(f"[part{number}]" for number in range(len(cards)))
    scale = "" if size is None else f"scale={size[0]}:{size[1]},"
    chains.append(f"{shown}concat=n={len(cards)}:v=1:a=0,{scale}format=yuv420p[film]")
    arguments += ["-filter_complex", ";".join(chains), "-map", "[film]", *H264]
    if sound is not None:
        arguments += ["-map", f"{2 * len(cards)}:a", *AAC]
    return run_ffmpeg(arguments, inputs, "made.mp4")


def cut_film(film: bytes, spans: Sequence[tuple[float, float]]) -> bytes:
    """Return parts of a film in this order, encoded again so that each begins at its frame."""
    chains = []
    for number, (start, end) in enumerate(spans):
        span = f"start={start:.2f}:end={end:.2f}"
        chains.append(f"[0:v]trim={span},setpts=PTS-STARTPTS[v{number}]")
        chains.append(f"[0:a]atrim={span},asetpts=PTS-STARTPTS[a{number}]")
    parts = "".join(f"[v{number}][a{number}]" for number in range(len(spans)))
    chains.append(f"{parts}concat=n={len(spans)}:v=1:a=1[film][sound]")
    arguments = ["-threads", "1", "-i", "../inputs/film.mp4", "-filter_complex", ";".join(chains)]
    arguments += ["-map", "[film]", *H264, "-map", "[sound]", *AAC]
    return run_ffmpeg(arguments, {"film.mp4": film}, "made.mp4")


def run_program(argv: Sequence[str], inputs: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Return the files that a program leaves; raise EnvironmentProblem if it fails."""
    return _run_once(tuple(argv), tuple((inputs or {}).items()))


# Works that differ in their answer only have the same film.
@lru_cache(16)
def _run_once(argv: tuple[str, ...], inputs: tuple[tuple[str, bytes], ...]) -> dict[str, bytes]:
    name = argv[0]
    if shutil.which(name) is None:
        raise EnvironmentProblem(f"Forging film and speech needs {name}: apt install {name}")
    ran = run_apart(_open_jail().run_program(argv, inputs=dict(inputs), limits=LIMITS))
    if not ran.succeeded:
        said = ran.stderr.decode("utf-8", "replace").strip()[-300:]
        raise EnvironmentProblem(f"{name} failed: {said or 'no message'}")
    return dict(ran.files)


@cache
def _open_jail() -> Jail:
    return run_apart(find_jail(slots=1))
