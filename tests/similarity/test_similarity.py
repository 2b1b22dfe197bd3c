import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.similarity import static_vectors, transformer
from gta_bench.similarity.catalog import MODELS, load_similarity

WORDLLAMA = load_similarity("wordllama")


def test_the_stand_in_for_tests_is_one_or_a_half() -> None:
    stand_in = load_similarity("exact-or-half")
    assert (stand_in.measure("a", "a"), stand_in.measure("a", "b")) == (1.0, 0.5)
    assert not stand_in.comparable


def test_wordllama_puts_a_paraphrase_above_another_matter() -> None:
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


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="all-mpnet-base-v2, wordllama, exact-or-half"):
        load_similarity("word2vec")


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        (static_vectors, "wordllama", r"gta-bench\[similarity-light\]"),
        (transformer, "sentence_transformers", r"gta-bench\[similarity\]"),
    ],
)
def test_a_model_that_is_not_installed_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: object, missing: str, extra: str
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    name = "wordllama" if missing == "wordllama" else "all-mpnet-base-v2"
    with pytest.raises(EnvironmentProblem, match=extra):
        load_similarity(name)


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
