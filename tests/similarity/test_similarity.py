import logging
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.settings import ScoringSettings
from gta_bench.similarity.catalog import (
    MODELS,
    choose_similarity,
    default_similarity,
    load_similarity,
)
from gta_bench.weights import MPNET, weights_folder

WORDLLAMA = load_similarity("wordllama")


def test_the_stand_in_for_tests_is_one_or_a_half() -> None:
    stand_in = load_similarity("exact-or-half")
    assert (stand_in.measure("a", "a"), stand_in.measure("a", "b")) == (1.0, 0.5)
    assert not stand_in.comparable


def test_wordllama_scores_a_paraphrase_above_another_topic() -> None:
    answer = "The man is riding a bicycle on the road."
    paraphrase = WORDLLAMA.measure(answer, "A person rides a bike along a street.")
    other = WORDLLAMA.measure(answer, "Preheat the oven and mix flour with sugar.")
    assert paraphrase > other + 0.3


def test_wordllama_is_recorded_with_its_version_and_is_not_comparable() -> None:
    assert WORDLLAMA.name.startswith("wordllama-0.4")
    assert not WORDLLAMA.comparable


@given(st.text(max_size=60), st.text(max_size=60))
def test_wordllama_stays_between_0_and_1_for_any_texts(first: str, second: str) -> None:
    assert 0.0 <= WORDLLAMA.measure(first, second) <= 1.0


def test_an_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="all-mpnet-base-v2, wordllama, exact-or-half"):
        load_similarity("word2vec")


def test_a_folder_needs_the_extra_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install .gta-bench\[similarity\]"):
        load_similarity(str(tmp_path))


def test_the_published_model_is_the_default_where_it_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    load_similarity.cache_clear()
    assert default_similarity() == "wordllama"
    with pytest.raises(EnvironmentProblem, match="gta tools fetch all-mpnet-base-v2"):
        load_similarity("all-mpnet-base-v2")
    kept = weights_folder() / MPNET.folder
    kept.mkdir(parents=True)
    for file in MPNET.files:
        (kept / file.name).write_bytes(b"something else")
    assert default_similarity() == "all-mpnet-base-v2"
    assert choose_similarity(ScoringSettings(similarity="wordllama")) == "wordllama"
    assert choose_similarity(ScoringSettings()) == "all-mpnet-base-v2"
    with pytest.raises(EnvironmentProblem, match="is not the published file"):
        load_similarity("all-mpnet-base-v2")


def test_the_table_imports_no_model(tmp_path: Path) -> None:
    program = (
        "import sys; import gta_bench.similarity.catalog; "
        "print([m for m in ('torch', 'wordllama', 'numpy') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
    assert len(MODELS) == 3


def test_wordllama_does_not_make_other_packages_talk() -> None:
    script = (
        "import logging; from gta_bench.similarity.catalog import load_similarity\n"
        "load_similarity('wordllama')\n"
        "logging.getLogger('httpx').info('a request')\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (f"[] {logging.WARNING}\n", "")
