"""Pictures, sound and film."""

import asyncio

from gta_bench.content.images import read_image
from gta_bench.content.media import (
    MOST_SECONDS,
    MediaInfo,
    SoundFacts,
    VideoContent,
    measure_sound,
    probe_media,
    read_subtitles,
    read_video,
)
from gta_bench.errors import GtaError, NotInstalled
from gta_bench.judging.showing.documents import add_properties
from gta_bench.judging.showing.draft import Draft, Subject, left_out, settled
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media.probing import ProbedFile, probe
from gta_bench.tools.media.sound import Span, decode
from gta_bench.tools.media.speech import OR_ENDPOINT, RATE, local_recognizer

MOST_SUBTITLES = 4
STILLS = 3  # of a moving picture: first, middle, last


async def show_picture(draft: Draft) -> None:
    """The picture; of a moving one the first, the middle and the last frame."""
    subject = draft.subject
    content = await settled(
        read_image(
            subject.data,
            subject.jail,
            previews=STILLS,
            longest_side=subject.limits.picture_side,
        )
    )
    if isinstance(content, GtaError):
        draft.missed("the picture", content)
        return
    draft.probe("format", content.format)
    draft.probe("width", content.width)
    draft.probe("height", content.height)
    if content.frames > 1:
        draft.probe("frames", content.frames)
        draft.cut.append(f"{len(content.previews)} of {content.frames:,} frames are shown")
    for preview in content.previews:
        label = (
            f"frame {preview.frame + 1} of {content.frames}" if content.frames > 1 else "picture"
        )
        draft.picture(preview.data, label)
    draft.hidden("words in its properties", content.words, shown=False)
    if all(preview.blank for preview in content.previews):
        draft.findings.append("the picture is blank: all of it has one colour")
    if max(content.width, content.height) > subject.limits.picture_side:
        draft.cut.append(
            f"the picture is shown smaller than its {content.width} x {content.height}"
        )


async def show_media(draft: Draft) -> None:
    """A sound or a film, by what is in it."""
    subject = draft.subject
    info = await settled(probe_media(subject.data, subject.jail))
    if isinstance(info, GtaError):
        draft.missed("its sound and pictures", info)
        return
    video, sound, spoken = await asyncio.gather(
        settled(_frames(subject, info)),
        settled(_sound(subject, info)),
        settled(_transcript(subject, info)),
    )
    _add_info(draft, info)
    await _add_subtitles(draft, info)
    if isinstance(video, GtaError):
        draft.missed("its frames", video)
    elif video is not None:
        _add_frames(draft, video)
    if isinstance(sound, GtaError):
        draft.missed("its sound in numbers", sound)
    elif sound is not None:
        _add_sound(draft, sound)
        if info.seconds is not None and info.seconds > MOST_SECONDS:
            draft.cut.append(f"the sound after {MOST_SECONDS:g} s is not measured")
    if isinstance(spoken, GtaError):
        draft.missed("what is said in it", spoken)
    elif spoken is not None:
        draft.text(spoken, what="transcript")
        limit = subject.limits.sound_seconds
        if info.seconds is not None and info.seconds > limit:
            draft.cut.append(f"what is said after {limit:g} s is not in the transcript")


def _add_info(draft: Draft, info: MediaInfo) -> None:
    draft.probe("container", info.container)
    draft.probe("seconds", None if info.seconds is None else round(info.seconds, 3))
    if info.video is not None:
        video = info.video
        draft.probe("resolution", f"{video.width} x {video.height}")
        draft.probe("frames a second", None if video.rate is None else round(video.rate, 3))
        draft.probe("video codec", video.codec)
    draft.probe("has sound", info.audio is not None)
    add_properties(draft, info.tags)
    draft.cut += [f"{other} is not shown" for other in info.others]
    if info.audio is not None:
        audio = info.audio
        draft.probe("sound", f"{audio.codec}, {audio.sample_rate} Hz, {audio.channels} channels")


async def _add_subtitles(draft: Draft, info: MediaInfo) -> None:
    subject = draft.subject
    for number in range(min(info.subtitles, MOST_SUBTITLES)):
        words = await settled(read_subtitles(subject.data, subject.jail, number))
        if isinstance(words, GtaError):
            draft.missed(f"subtitles {number + 1}", words)
        else:
            draft.text(f"[Subtitles {number + 1}]\n{words.strip()}\n\n", what="subtitles")
    if info.subtitles > MOST_SUBTITLES:
        draft.cut.append(left_out("subtitle track", MOST_SUBTITLES + 1, info.subtitles))


async def _frames(subject: Subject, info: MediaInfo) -> VideoContent | None:
    if info.video is None:
        return None
    limits = subject.limits
    return await read_video(
        subject.data, subject.jail, frames=limits.frames, longest_side=limits.picture_side
    )


def _add_frames(draft: Draft, video: VideoContent) -> None:
    draft.probe("frames", video.frame_count)
    for frame in video.frames:
        number = f"frame {frame.number + 1} of {video.frame_count}"
        draft.picture(frame.jpeg, f"{number}, at {frame.seconds:.2f} s")
    if len(video.frames) < video.frame_count:
        shown = len(video.frames)
        draft.cut.append(f"{shown} of {video.frame_count:,} frames are shown, at even times")
    if video.missing:
        times = ", ".join(f"{seconds:.2f} s" for seconds in video.missing)
        draft.unshown.append(f"frames at {times}: they cannot be decoded")


async def _sound(subject: Subject, info: MediaInfo) -> SoundFacts | None:
    if info.audio is None:
        return None
    return await measure_sound(subject.data, subject.jail, info)


def _add_sound(draft: Draft, sound: SoundFacts) -> None:
    draft.probe("mean level in dBFS", sound.mean_level)
    draft.probe("peak level in dBFS", sound.peak_level)
    draft.probe("loudness in LUFS", sound.loudness)
    draft.probe("share of silence", sound.silent)
    draft.picture(sound.waveform, "waveform of the sound, from beginning to end")
    if sound.peak_level is None:
        draft.findings.append("the sound is silent throughout")


async def _transcript(subject: Subject, info: MediaInfo) -> str | None:
    if info.audio is None:
        return None
    recognizer = local_recognizer(subject.equipment)
    if isinstance(recognizer, Unavailable):
        raise NotInstalled(recognizer.reason, mend=recognizer.mend.removesuffix(OR_ENDPOINT))
    media = await probe(subject.jail, subject.data, path="the file")
    source = ProbedFile("the file", subject.data, media)
    span = Span(0.0, subject.limits.sound_seconds)
    samples = await decode(subject.jail, source, span=span, rate=RATE, mono=True)
    words = await recognizer.transcribe(subject.jail, samples)
    if not words.strip():
        return f"[No speech was found by {recognizer.backend}.]"
    return f"[Transcript by {recognizer.backend}, which may be wrong]\n{words}"
