"""Every block of README and docs is checked by what its language says; none is left out.

| language | what is done with it |
|---|---|
| `console` | run as written, output compared (test_console_blocks.py) |
| `sh` | bash reads it; every `gta` in it is read by the command line, options and values |
| | and executed by test_shell_blocks.py, but for those that it lists with a reason |
| `python` | compiled; all it imports from gta_bench is there and has the arguments it is given |
| `toml` | read as gta.toml with every key checked, or as the file that its title names |
| `yaml`, `json` | parsed; a plan of tool groups is read as `gta tools serve --on ray` reads it |
| `sql` | executed by DuckDB on an exported table |
| `text` | not run: output, diagrams, commands of others; a `gta` in it is read as in `sh` |

Files that a block is titled with are written, and used by the console blocks of their page.
"""

import ast
import importlib
import inspect
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]

from gta_bench.authoring.declared import WRONG_FILE, WrongFile
from gta_bench.datasets.folders import load_task
from gta_bench.records.study import StudyFile
from gta_bench.serving.ray_plan import read_plan
from gta_bench.settings import read_settings
from gta_bench.tools.catalog import CATALOG
from tests.authored import write_task
from tests.conftest import REPOSITORY
from tests.docs.blocks import ALL, PAGES, Block, of, prose
from tests.docs.command_lines import every_command, gta_commands, options, read_by_gta, resolve

LANGUAGES = {"console", "json", "python", "sh", "sql", "text", "toml", "yaml"}
INLINE = re.compile(r"(?<!`)`(gta [^`]+)`(?!`)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# Options of others that sentences name: Inspect, pip, docker, aws, Slurm, bubblewrap, verifiers,
# llama.cpp, upstream's own.
OTHERS = {
    *(
        "--model-role",
        "--log-dir",
        "--dry-run",
        "--file",
        "--recursive",
        "--signal",
        "--constraint",
    ),
    *("--seccomp", "--perms", "--dir", "--env"),
    *("--jinja", "--chat-template-file"),
    *("--api-key", "--token", "--password"),
    *("--max-num-workers", "--debug", "--reuse", "--work-dir", "--slurm", "--dump-eval-details"),
}
GENERATED = REPOSITORY / "docs" / "reference" / "cli.md"


def place(block: Block) -> str:
    return block.place


def test_every_block_says_what_it_is() -> None:
    assert not [f"{one.place}: {one.language!r}" for one in ALL if one.language not in LANGUAGES]
    assert {one.language for one in ALL} == LANGUAGES


def test_no_command_hides_in_an_indented_block() -> None:
    hidden = [
        f"{page.name}: {line.strip()}"
        for page in PAGES
        for line in prose(page).splitlines()
        if re.match(r" {4,}(?:\$ )?(?:gta|pip|export|python3?) ", line)
    ]
    assert not hidden


@pytest.mark.parametrize("block", of("sh"), ids=place)
def test_shell_blocks_are_read_by_bash_and_by_gta(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    _read_all(block)


@pytest.mark.parametrize("block", [one for one in of("text") if one.page != GENERATED], ids=place)
def test_gta_in_text_blocks_is_read_by_gta(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _read_all(block)


def _read_all(block: Block) -> None:
    for words in gta_commands(block.text):
        try:
            read_by_gta(words)
        except click.UsageError as exc:
            pytest.fail(f"{block.place}: gta {' '.join(words)}: {exc.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_commands_and_options_that_sentences_name_exist(page: Path) -> None:
    for found in INLINE.findall(prose(page)):
        words = [word.strip(",.;:()[]") for word in found.split()[1:]]
        command, rest = resolve(words)
        if isinstance(command, click.Group):
            assert not rest or rest[0][:1] in "-…A" or "|" in rest[0], f"{page.name}: {found}"
        known = options(command)
        named = [word.partition("=")[0] for word in rest if word.startswith("--") and word != "--"]
        assert {*named} <= known, f"{page.name}: {found}: {sorted({*named} - known)}"


def test_no_sentence_names_an_option_that_nobody_has() -> None:
    known = set().union(*(options(command) for command in every_command()))
    strange = [
        f"{page.name}: {found}"
        for page in PAGES
        for found in OPTION.findall(prose(page))
        if found not in known | OTHERS
    ]
    assert not strange


@pytest.mark.parametrize("block", of("python"), ids=place)
def test_python_blocks_compile_and_use_what_is_there(block: Block) -> None:
    tree = ast.parse(block.text)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compile(block.text, block.place, "exec", flags=flags)
    names = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (function := _found(node.func, names)) is not None:
            _check_call(function, node)
        elif isinstance(node, ast.Attribute):
            _found(node, names)


def _imported(tree: ast.Module) -> dict[str, Any]:
    """The names of gta_bench in the block, with what they stand for; importing them must work."""
    names: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gta_bench"):
            module = importlib.import_module(node.module or "")
            names |= {one.asname or one.name: getattr(module, one.name) for one in node.names}
        elif isinstance(node, ast.Import):
            for one in node.names:
                if one.name == "gta_bench":
                    names[one.asname or one.name] = importlib.import_module(one.name)
    return names


def _found(node: ast.expr, names: dict[str, Any]) -> Any | None:
    """What a name or a dotted name of gta_bench stands for; one that is not there fails."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := _found(node.value, names)) is not None:
        return getattr(owner, node.attr)
    return None


def _check_call(function: Any, node: ast.Call) -> None:
    starred = any(isinstance(one, ast.Starred) for one in node.args)
    if starred or (isinstance(function, type) and issubclass(function, Exception)):
        return
    named = {one.arg: None for one in node.keywords if one.arg is not None}
    inspect.signature(function).bind(*node.args, **named)


@pytest.mark.parametrize("block", of("toml"), ids=place)
def test_toml_blocks_are_settings_or_tasks(block: Block, tmp_path: Path) -> None:
    file_name = None if block.title is None else Path(block.title).name
    if file_name == "pyproject.toml":
        assert tomllib.loads(block.text)["project"]["name"]
        return
    if file_name == "task.toml":
        name = tomllib.loads(block.text)["id"]
        assert load_task(write_task(tmp_path, block.text, name=name)).checkpoints
        return
    if file_name == WRONG_FILE:
        assert WrongFile.model_validate_json(json.dumps(tomllib.loads(block.text))).breaks
        return
    if file_name == "study.toml":
        assert StudyFile.model_validate(tomllib.loads(block.text)).questions
        return
    assert file_name in (None, "gta.toml")
    file = tmp_path / "gta.toml"
    file.write_text(block.text, encoding="utf-8")
    assert read_settings(file).settings


@pytest.mark.parametrize("block", of("json"), ids=place)
def test_json_blocks_are_json(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", of("yaml"), ids=place)
def test_yaml_blocks_are_plans(block: Block, tmp_path: Path) -> None:
    assert "groups" in yaml.safe_load(block.text)
    file = tmp_path / "tools.yaml"
    file.write_text(block.text, encoding="utf-8")
    assert read_plan(file, CATALOG)


@pytest.mark.parametrize("block", of("sql"), ids=place)
def test_sql_blocks_run_on_exported_tables(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    monkeypatch.chdir(tmp_path)
    (tmp_path / "DIR" / "verdicts").mkdir(parents=True)
    row = "SELECT 'runs/a' AS run, 'j' AS judge, 7.0 AS value"
    duckdb.sql(f"COPY ({row}) TO 'DIR/verdicts/a.parquet'")
    assert duckdb.execute(block.text).fetchall() == [("runs/a", "j", 7.0)]
