"""Plot's list of fonts, made once: the host's fonts, and a CJK font under the names models write.

Without it every process would open every font of the host. The names are those of fonts that come
with Windows and macOS and are asked for in most Chinese examples.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager

ALIASES = (
    "SimHei", "SimSun", "NSimSun", "FangSong", "KaiTi", "STSong", "STHeiti", "STKaiti",
    "Microsoft YaHei", "Microsoft JhengHei", "PingFang SC", "Heiti SC", "Heiti TC", "Songti SC",
    "Hiragino Sans GB", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Source Han Sans SC",
    "Source Han Sans CN", "Noto Sans SC", "Arial Unicode MS", "MS Gothic", "Malgun Gothic",
)  # fmt: skip
CJK = "Noto Sans CJK SC"


def prepare() -> dict[str, Any]:
    """The list is written when matplotlib is imported; add the names and write it again."""
    manager = font_manager.fontManager
    faces = [entry for entry in manager.ttflist if entry.name == CJK]
    known = {entry.name for entry in manager.ttflist}
    for name in (alias for alias in ALIASES if alias not in known):
        manager.ttflist += [dataclasses.replace(face, name=name) for face in faces]
    cache = next(Path(matplotlib.get_cachedir()).glob("fontlist*.json"))
    font_manager.json_dump(manager, cache)
    return {"cache": cache, "cjk": bool(faces)}


def finish(names: dict[str, Any]) -> str:
    """The file's name and content, and whether a CJK font was found."""
    cache: Path = names["cache"]
    content = cache.read_text(encoding="utf-8")
    return json.dumps({"name": cache.name, "content": content, "cjk": names["cjk"]})
