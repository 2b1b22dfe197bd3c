"""Show pictures, sound and video."""

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
from gta_bench.errors import NotInstalled
from gta_bench.judging.showing.documents import add_properties
from gta_bench.judging.showing.draft import Draft, Subject, describe_rest, settle
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media.probing import ProbedFile, probe
from gta_bench.tools.media.sound import Span, decode
from gta_bench.tools.media.speech import OR_ENDPOINT, RATE, local_recognizer

MOST_SUBTITLES = 4
STILLS = 3  # of an animated picture: first, middle, last


async def show_picture(draft: Draft) -> None:
    """Show a picture; of an animated one the first, the middle and the last frame."""
    subject, side = draft.subject, draft.subject.limits.picture_side
    read = read_image(subject.data, subject.jail, previews=STILLS, longest_side=side)
    content = draft.take("the picture", await settle(read))
    if content is None:
        return
    draft.add_fact("format", content.format)
    draft.add_fact("width", content.width)
    draft.add_fact("height", content.height)
    if content.frames > 1:
        draft.add_fact("frames", content.frames)
        draft.cut.append(f"{len(content.previews)} of {content.frames:,} frames are shown")
    for preview in content.previews:
        frame = f"frame {preview.frame + 1} of {content.frames}"
        draft.add_picture(preview.data, frame if content.frames > 1 else "picture")
    draft.add_hidden("words in its properties", content.words, shown=False)
    if all(preview.blank for preview in content.previews):
        one_color = "the picture is blank: all of it has one colour"  # codespell:ignore
        draft.findings.append(one_color)
    if max(content.width, content.height) > side:
        draft.cut.append(
            f"the picture is shown smaller than its {content.width} x {content.height}"
        )


async def show_media(draft: Draft) -> None:
    """Show a sound or a video: frames, measurements, transcript and subtitles."""
    subject = draft.subject
    probed = await settle(probe_media(subject.data, subject.jail))
    info = draft.take("its sound and pictures", probed)
    if info is None:
        return
    video, sound, spoken = await asyncio.gather(
        settle(_read_frames(subject, info)),
        settle(_measure_sound(subject, info)),
        settle(_transcribe(subject, info)),
    )
    _add_info(draft, info)
    await _add_subtitles(draft, info)
    seconds, limit = info.seconds or 0.0, subject.limits.sound_seconds
    if (frames := draft.take("its frames", video)) is not None:
        _add_frames(draft, frames)
    if (facts := draft.take("its sound in numbers", sound)) is not None:
        _add_sound(draft, facts)
        if seconds > MOST_SECONDS:
            draft.cut.append(f"the sound after {MOST_SECONDS:g} s is not measured")
    if (transcript := draft.take("what is said in it", spoken)) is not None:
        draft.add_text(transcript, what="transcript")
        if seconds > limit:
            draft.cut.append(f"what is said after {limit:g} s is not in the transcript")


def _add_info(draft: Draft, info: MediaInfo) -> None:
    draft.add_fact("container", info.container)
    draft.add_fact("seconds", None if info.seconds is None else round(info.seconds, 3))
    if info.video is not None:
        video = info.video
        draft.add_fact("resolution", f"{video.width} x {video.height}")
        draft.add_fact("frames a second", None if video.rate is None else round(video.rate, 3))
        draft.add_fact("video codec", video.codec)
    draft.add_fact("has sound", info.audio is not None)
    add_properties(draft, info.tags)
    draft.cut += [f"{other} is not shown" for other in info.others]
    if info.audio is not None:
        audio = info.audio
        draft.add_fact("sound", f"{audio.codec}, {audio.sample_rate} Hz, {audio.channels} channels")


async def _add_subtitles(draft: Draft, info: MediaInfo) -> None:
    subject = draft.subject
    for number in range(min(info.subtitles, MOST_SUBTITLES)):
        found = await settle(read_subtitles(subject.data, subject.jail, number))
        words = draft.take(f"subtitles {number + 1}", found)
        if words is not None:
            draft.add_text(f"[Subtitles {number + 1}]\n{words.strip()}\n\n", what="subtitles")
    if info.subtitles > MOST_SUBTITLES:
        draft.cut.append(describe_rest("subtitle track", MOST_SUBTITLES + 1, info.subtitles))


async def _read_frames(subject: Subject, info: MediaInfo) -> VideoContent | None:
    if info.video is None:
        return None
    limits = subject.limits
    return await read_video(
        subject.data, subject.jail, frames=limits.frames, longest_side=limits.picture_side
    )


def _add_frames(draft: Draft, video: VideoContent) -> None:
    draft.add_fact("frames", video.frame_count)
    for frame in video.frames:
        number = f"frame {frame.number + 1} of {video.frame_count}"
        draft.add_picture(frame.jpeg, f"{number}, at {frame.seconds:.2f} s")
    if len(video.frames) < video.frame_count:
        shown = len(video.frames)
        draft.cut.append(f"{shown} of {video.frame_count:,} frames are shown, at even times")
    if video.missing:
        times = ", ".join(f"{seconds:.2f} s" for seconds in video.missing)
        draft.unshown.append(f"frames at {times}: they cannot be decoded")


async def _measure_sound(subject: Subject, info: MediaInfo) -> SoundFacts | None:
    if info.audio is None:
        return None
    return await measure_sound(subject.data, subject.jail, info)


def _add_sound(draft: Draft, sound: SoundFacts) -> None:
    draft.add_fact("mean level in dBFS", sound.mean_level)
    draft.add_fact("peak level in dBFS", sound.peak_level)
    draft.add_fact("loudness in LUFS", sound.loudness)
    draft.add_fact("share of silence", sound.silent)
    draft.add_picture(sound.waveform, "waveform of the sound, from beginning to end")
    if sound.peak_level is None:
        draft.findings.append("the sound is silent throughout")


async def _transcribe(subject: Subject, info: MediaInfo) -> str | None:
    if info.audio is None:
        return None
    recognizer = local_recognizer(subject.equipment)
    if isinstance(recognizer, Unavailable):
        raise NotInstalled(recognizer.reason, fix=recognizer.fix.removesuffix(OR_ENDPOINT))
    media = await probe(subject.jail, subject.data, path="the file")
    source = ProbedFile("the file", subject.data, media)
    span = Span(0.0, subject.limits.sound_seconds)
    samples = await decode(subject.jail, source, span=span, rate=RATE, mono=True)
    words = await recognizer.transcribe(subject.jail, samples)
    if not words.strip():
        return f"[No speech was found by {recognizer.backend}.]"
    return f"[Transcript by {recognizer.backend}, which may be wrong]\n{words}"
