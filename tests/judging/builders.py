"""Handmade evidence, and judges that ask a server on loopback."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from inspect_ai.model import GenerateConfig, Model, get_model

from gta_bench.judging.judge import Judge
from gta_bench.judging.options import JudgeOptions, judge_name
from gta_bench.records.evidence import Evidence, FileEvidence, Picture
from gta_bench.records.workflow import Checkpoint, WorkflowTask

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def task(name: str = "7", leaves: int = 3, **changes: Any) -> WorkflowTask:
    tree = Checkpoint(
        id="cp1",
        requirements="The report is there",
        children=tuple(
            Checkpoint(id=f"cp1-{number}", requirements=f"Part {number} of {name} is right")
            for number in range(1, leaves + 1)
        ),
    )
    values: dict[str, Any] = {
        "id": name,
        "request": f"Write report {name}.",
        "category": None,
        "tools": (),
        "attachments": (),
        "checkpoints": (tree,),
    }
    return WorkflowTask(**{**values, **changes})


def picture(label: str = "page 1", width: int = 300, height: int = 200) -> Picture:
    return Picture(digest=sha(PNG), media_type="image/png", label=label, width=width, height=height)


def file(path: str = "report.md", text: str = "All is well.", **changes: Any) -> FileEvidence:
    kind = path.rpartition(".")[2]
    values = {"digest": sha(text.encode()), "size": len(text), "claims": kind, "kind": kind}
    return FileEvidence(**{"path": path, "text": text, **values, **changes})


def evidence(*deliverables: FileEvidence, **changes: Any) -> Evidence:
    return Evidence(answer=changes.pop("answer", "Done."), deliverables=deliverables, **changes)


def stored(digest: str) -> bytes:
    assert digest == sha(PNG)
    return PNG


def judge(
    url: str, *, repeats: int = 1, config: dict[str, Any] | None = None, **options: Any
) -> Judge:
    chosen = JudgeOptions(**options)
    asked = GenerateConfig(**{"max_retries": 0, "max_connections": 10, **(config or {})})
    return Judge(model(url, asked), judge_name("local/m", chosen), chosen, repeats)


def model(url: str, config: GenerateConfig) -> Model:
    return get_model(
        "openai-api/local/m", config=config, base_url=url, api_key="none", memoize=False
    )


def question(request: dict[str, Any]) -> str:
    """The last block of a request: the requirements."""
    content = request["messages"][-1]["content"]
    return str(content if isinstance(content, str) else content[-1]["text"])


def names(request: dict[str, Any]) -> list[str]:
    """The names under which a request asks for leaves."""
    return re.findall(r"^leaf: (\S+)$", question(request), re.MULTILINE)


def asked(request: dict[str, Any]) -> list[str]:
    """The leaves that a request asks for."""
    return [name.partition("~")[0] for name in names(request)]


def verdict(leaf: str, score: float = 8, **changes: Any) -> dict[str, Any]:
    return {"leaf": leaf, "used": ["report.md"], "reason": "Seen.", "score": score, **changes}


def honest(request: dict[str, Any]) -> str:
    """What a sound judge replies: a verdict for each leaf, in the form that was asked for."""
    return replied(names(request), "verdicts" in question(request))


def replied(leaves: Sequence[str], several: bool) -> str:
    verdicts = [verdict(leaf) for leaf in leaves]
    return json.dumps({"verdicts": verdicts} if several else verdicts[0])
