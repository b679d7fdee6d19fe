"""Tiny models of the real classes, imported: the ids of texts, and translations, are those of their own engines."""

from pathlib import Path

import pytest

from tests.export.imports.parity import Imported, import_tiny
from tests.imports.families import EXPECTED, MODELS

NAMES = [
    *sorted(path.name for path in MODELS.iterdir() if (EXPECTED / f"{path.name}.json.gz").exists()),
    "opennmt",
    "fairseq",
]


@pytest.fixture(scope="module", params=NAMES)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    directory: Path = tmp_path_factory.mktemp(request.param)
    return import_tiny(request.param, directory)


def test_texts_have_the_same_ids(imported: Imported) -> None:
    for sentence in imported.expected.sentences:
        pair = imported.pair(sentence)
        assert list(imported.tokenizer.encode(sentence.text, pair.source_prefix)) == sentence.source_ids
        assert list(pair.target_prefix) == ([] if sentence.forced_bos is None else [sentence.forced_bos])


def test_ids_have_the_same_texts(imported: Imported) -> None:
    for sentence in imported.expected.sentences:
        for ids, text in zip(sentence.outputs, sentence.texts, strict=True):
            shown = [token for token in ids if token != imported.expected.eos_id]
            assert imported.tokenizer.decode(shown) == text.strip()  # some tokenizers leave a blank at the end


def test_translations_have_the_same_ids(imported: Imported) -> None:
    """By the oracle, which has no cache: tests/parity/test_imported.py has all sentences, by graphs and engine."""
    equal = {run: imported.num_equal(run, 40) for run in imported.expected.runs}

    assert equal == dict.fromkeys(imported.expected.runs, 40)
