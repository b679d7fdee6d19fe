"""The committed tiny models: complete, small, and such that a test with them can fail."""

import json

import pytest

from tests.imports import opennmt
from tests.imports.converting import CONVERTED
from tests.imports.expected import Expected, Run, read
from tests.imports.families import EXPECTED, MODELS

NAMES = sorted(path.name for path in MODELS.iterdir())
FILES = {
    "marian-shared": {"source.spm", "target.spm", "vocab.json", "generation_config.json", "model.safetensors"},
    "marian-eos-first": {"source.spm", "target.spm", "vocab.json", "generation_config.json", "pytorch_model.bin"},
    "marian-separate": {
        "source.spm",
        "target.spm",
        "vocab.json",
        "target_vocab.json",
        "generation_config.json",
        "special_tokens_map.json",
        "model.safetensors",
    },
    "m2m100": {
        "sentencepiece.bpe.model",
        "vocab.json",
        "generation_config.json",
        "special_tokens_map.json",
        "model.safetensors",
    },
    "nllb": {
        "sentencepiece.bpe.model",
        "tokenizer.json",
        "generation_config.json",
        "special_tokens_map.json",
        "model.safetensors",
    },
    "mbart50": {
        "sentencepiece.bpe.model",
        "tokenizer.json",
        "generation_config.json",
        "special_tokens_map.json",
        "model.safetensors",
    },
    "fsmt": {"vocab-src.json", "vocab-tgt.json", "merges.txt", "generation_config.json", "pytorch_model.bin"},
}


@pytest.fixture(scope="module", params=NAMES)
def expected(request: pytest.FixtureRequest) -> Expected:
    return read(EXPECTED / f"{request.param}.json.gz")


def test_every_family_has_the_files_that_the_hub_has() -> None:
    found = {path.name: {file.name for file in path.iterdir()} for path in MODELS.iterdir()}

    assert found == {name: {*files, "config.json", "tokenizer_config.json"} for name, files in FILES.items()}


def test_all_together_take_at_most_three_megabytes() -> None:
    folders = (MODELS, EXPECTED, CONVERTED, opennmt.DIRECTORY)
    files = [file for folder in folders for file in folder.rglob("*")]

    assert sum(path.stat().st_size for path in files if path.is_file()) <= 3_000_000


def test_there_are_enough_sentences_in_every_run_and_direction(expected: Expected) -> None:
    directions = [(sentence.source_language, sentence.target_language) for sentence in expected.sentences]

    assert len(expected.sentences) >= 300
    assert all(len(sentence.chosen) == len(expected.runs) == 9 for sentence in expected.sentences)
    assert min(directions.count(direction) for direction in set(directions)) >= 80


def test_most_sentences_end_by_themselves_and_some_do_not(expected: Expected) -> None:
    for run in expected.runs:
        ended = [ids for ids in expected.outputs(run) if ids[-1] == expected.eos_id and len(ids) < run.max_tokens]
        assert 0.5 < len(ended) / len(expected.sentences) < 1, run


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Run(1, False, False, 1.0, 24), Run(4, False, False, 1.0, 24)),
        (Run(1, False, False, 1.0, 24), Run(1, False, True, 1.0, 24)),
        (Run(4, True, False, 1.0, 24), Run(4, True, True, 1.0, 24)),
        (Run(4, False, True, 2.0, 24), Run(4, True, True, 2.0, 24)),
        (Run(4, False, True, 1.0, 24), Run(4, False, True, 0.6, 24)),
        (Run(4, False, True, 1.0, 24), Run(4, False, True, 2.0, 24)),
    ],
)
def test_whoever_ignores_an_option_is_found_out(expected: Expected, one: Run, other: Run) -> None:
    pairs = zip(expected.outputs(one), expected.outputs(other), strict=True)

    assert sum(a != b for a, b in pairs) >= 10


def test_forced_tokens_are_where_they_were_forced(expected: Expected) -> None:
    for run in expected.runs:
        for sentence, ids in zip(expected.sentences, expected.outputs(run), strict=True):
            assert len(ids) <= run.max_tokens
            assert sentence.forced_bos in (None, ids[0])
            assert not run.forced_eos or ids[-1] == expected.eos_id


def test_outputs_are_of_many_kinds(expected: Expected) -> None:
    for run in expected.runs:
        assert len({tuple(ids) for ids in expected.outputs(run)}) > 150, run


@pytest.mark.parametrize("name", NAMES)
def test_the_sides_differ_in_depth_heads_and_width(name: str) -> None:
    config = json.loads((MODELS / name / "config.json").read_text(encoding="utf-8"))

    for size in ("layers", "attention_heads", "ffn_dim"):
        assert config[f"encoder_{size}"] != config[f"decoder_{size}"], size
