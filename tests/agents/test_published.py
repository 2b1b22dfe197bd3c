"""`react-upstream` with the published words where they are here, and with ours where not."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput, ModelUsage, get_model

import gta_bench
from gta_bench.agents.contract import Setup
from gta_bench.agents.published import PublishedTexts, find_published, read_published
from gta_bench.agents.react import add_published_sampling
from gta_bench.errors import DatasetError, EnvironmentProblem, RunError
from gta_bench.reports.summary import run_badges
from gta_bench.settings import DataSettings, ScoringSettings, Settings
from tests.agents.stand_ins import ARGUMENTS, FILES, LAST, NOW, install_lagent, keep_prompts
from tests.builders import atomic_task, write_atomic


class Heard:
    """A model that keeps what it was sent, and how it was asked."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = []
        self.configs: list[GenerateConfig] = []

    def __call__(
        self, input: list[ChatMessage], tools: Any, choice: Any, config: GenerateConfig
    ) -> ModelOutput:
        self.texts.append([message.text for message in input])
        self.configs.append(config)
        output = ModelOutput.from_content("mockllm", "Thought: x\nFinal Answer: 7")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    def model(self, **config: Any) -> Model:
        return get_model(
            "mockllm/model",
            custom_outputs=self,
            config=GenerateConfig(**config),
            memoize=False,
        )


def settings(prompts: Path) -> Settings:
    return Settings(
        data=DataSettings(prompts=str(prompts)), scoring=ScoringSettings(similarity="exact-or-half")
    )


def run(tmp_path: Path, out: str, prompts: Path, heard: Heard, **config: Any) -> Path:
    data = tmp_path / "data"
    gta_bench.run(
        "atomic",
        tmp_path / out,
        model=heard.model(**config),
        agent="react-upstream",
        mode="step",
        data=data if data.is_dir() else write_atomic(data, {n: atomic_task() for n in "01"}),
        settings=settings(prompts),
        preflight=False,
    )
    return tmp_path / out


@pytest.fixture
def prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both sources, with stand-ins."""
    install_lagent(tmp_path / "site", monkeypatch)
    return keep_prompts(tmp_path / "prompts", monkeypatch)


def test_the_published_words_and_sampling_are_sent_and_named(tmp_path: Path, prompts: Path) -> None:
    heard = Heard()
    out = run(tmp_path, "run", prompts, heard)
    first, last = sorted(heard.texts, key=len)[:: len(heard.texts) - 1]
    assert first[0].startswith("Stand-in [{'name': 'OCR'")
    assert ARGUMENTS in first[0]
    assert first[0].endswith("['OCR'] Thought: Action: Action Input: Response: Final Answer:")
    assert first[1] == f"{FILES}`inputs/menu.jpg`"
    assert last[-1] == LAST
    asked = {(one.temperature, one.max_tokens, one.num_choices) for one in heard.configs}
    assert asked == {(0.7, 512, 1)}
    manifest = gta_bench.manifest(out)
    assert manifest.spec.wording == "published"
    assert (manifest.spec.system.temperature, manifest.spec.system.max_tokens) == (0.7, 512)
    assert len([name for name in manifest.prompts if name.startswith("published/")]) == 5
    assert "published prompts" in run_badges(manifest)
    assert manifest.notes == ()


def test_a_models_own_sampling_wins_over_the_published_one(tmp_path: Path, prompts: Path) -> None:
    heard = Heard()
    out = run(tmp_path, "run", prompts, heard, temperature=0.0)
    assert {(one.temperature, one.max_tokens) for one in heard.configs} == {(0.0, 512)}
    assert gta_bench.manifest(out).spec.system.temperature == 0.0


def test_without_the_texts_the_words_are_ours_and_everything_says_so(
    tmp_path: Path, prompts: Path
) -> None:
    heard = Heard()
    ours = run(tmp_path, "ours", tmp_path / "nowhere", heard)
    assert "Stand-in" not in str(heard.texts)
    assert {(one.temperature, one.max_tokens, one.num_choices) for one in heard.configs} == {
        (None, None, None)
    }
    manifest = gta_bench.manifest(ours)
    assert manifest.spec.wording == "own"
    assert "prompts in our own words" in run_badges(manifest)
    assert "`gta data fetch prompts`" in manifest.notes[0]
    published = run(tmp_path, "published", prompts, Heard())
    (found,) = gta_bench.compare(ours, published)
    assert "wording: own and published" in found.cautions
    with pytest.raises(RunError, match=r"another setting \(wording: own there, published here\)"):
        run(tmp_path, "ours", prompts, Heard())


def test_a_run_with_published_words_is_not_continued_without_them(
    tmp_path: Path, prompts: Path
) -> None:
    with pytest.raises(EnvironmentProblem, match=r"incomplete here. Run `gta data fetch prompts`"):
        read_published(tmp_path / "nowhere")


def test_another_version_of_the_package_has_other_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = keep_prompts(tmp_path / "prompts", monkeypatch)
    assert find_published(folder) is None
    install_lagent(tmp_path / "site", monkeypatch, version="0.2.3")
    assert find_published(folder) is None


def test_changed_texts_are_refused(tmp_path: Path, prompts: Path) -> None:
    assert isinstance(find_published(prompts), PublishedTexts)
    (tmp_path / "site" / "lagent" / "agents" / "react.py").write_text("NOW = 'x'")
    with pytest.raises(EnvironmentProblem, match=r"lagent 0\.2\.4 is not the published one"):
        find_published(prompts)
    for other in ('{"files": "other", "answer_without_tools": "x"}', '{"files"'):
        (prompts / "prompts.json").write_text(other)
        with pytest.raises(DatasetError, match="does not contain the published texts"):
            find_published(prompts)


def test_the_last_message_end_to_end_is_lagents(prompts: Path) -> None:
    texts = read_published(prompts)
    assert texts.answer_now == NOW
    assert add_published_sampling(Setup()).config is None
