"""A product behind the contract of docs/reference/product-api.yaml; your agent goes into `work`.

`PRODUCT_KEY=… uvicorn product_service:app` starts it, and `gta run workflow --out runs/mine
--product http://127.0.0.1:8000 --product-key-env PRODUCT_KEY` measures it.
"""

import os
import secrets
from typing import Annotated, Any

from fastapi import BackgroundTasks, Depends, FastAPI, Form, Header, HTTPException, Response
from fastapi import UploadFile as Upload


def keyed(authorization: Annotated[str, Header()] = "") -> None:
    key = os.environ["PRODUCT_KEY"]
    if not secrets.compare_digest(authorization, f"Bearer {key}"):
        raise HTTPException(401, "wrong key")


app = FastAPI(dependencies=[Depends(keyed)])
tasks: dict[str, dict[str, Any]] = {}
contents: dict[tuple[str, str], bytes] = {}


def work(prompt: str, files: dict[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """Your agent: a final text, and files by name; names may have folders."""
    report = f"# Report\n\n{prompt}\n\nGiven: {', '.join(files) or 'no file'}.\n"
    return "The report is in docs/report.md.", {"docs/report.md": report.encode()}


def perform(task: str, prompt: str, files: dict[str, bytes]) -> None:
    final, made = work(prompt, files)
    listed = [{"id": f"f{n}", "name": name, "size": len(made[name])} for n, name in enumerate(made)]
    contents.update({(task, f"f{n}"): data for n, data in enumerate(made.values())})
    tasks[task] = {"status": "done", "final": final, "files": listed, "meta": {"cost_usd": 0.01}}


@app.get("/v1/about")
def about() -> dict[str, str]:
    return {"name": "Example", "version": "1.0", "model": "none"}


@app.post("/v1/tasks", status_code=201)
async def submit(
    prompt: Annotated[str, Form()],
    idempotency_key: Annotated[str, Header(pattern="^[0-9a-f]{32}$")],
    later: BackgroundTasks,
    files: list[Upload] | None = None,
) -> dict[str, str]:
    if idempotency_key not in tasks:  # the same key is the same task, sent again
        tasks[idempotency_key] = {"status": "running"}
        given = {one.filename or "file": await one.read() for one in files or []}
        later.add_task(perform, idempotency_key, prompt, given)
    return {"id": idempotency_key}


app.get("/v1/tasks/{task}")(lambda task: tasks[task])
app.delete("/v1/tasks/{task}", status_code=204)(lambda task: tasks.pop(task, None))
app.get("/v1/tasks/{task}/files/{file}")(lambda task, file: Response(contents[task, file]))
