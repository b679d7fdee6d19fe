"""Dictionaries of fairseq, and the tokenizer that they and the files beside them stand for."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from export.imports.report import ImportFault
from tests.export.imports.parity import read_whole
from tests.imports.fairseq import SPECIAL, fsmt_dictionaries, random_checkpoint, write_directory
from tests.imports.families import MODELS

pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")


def fault_of(directory: Path) -> str:
    with pytest.raises(ImportFault) as caught:
        read_whole(directory)
    return str(caught.value)


def moses_of(directory: Path) -> tuple[dict[str, Any], list[str]]:
    model, report = read_whole(directory)
    return json.loads(model.tokenizer["moses.json"]), report.notes


def write_small(directory: Path, pieces: list[str], merges: str = "a b\n", **options: object) -> Path:
    """Writes a model with these pieces first, those of both sides alike."""
    _, document, sides = random_checkpoint("pre-shared")
    vars(document["args"]).update(options)
    lines = [*pieces, *sides[0][len(pieces) :]]
    write_directory(directory, document, (lines, lines))
    (directory / "bpecodes").write_text(merges, encoding="utf-8")
    return directory


def test_pieces_say_whether_they_end_a_word(tmp_path: Path) -> None:
    model, _ = read_whole(write_small(tmp_path / "en-de", ["the", "th@@", "@@", "@-@", "madeupword0000", "X"]))

    pieces = json.loads(model.tokenizer["source_pieces.json"])
    assert pieces[:10] == ["", "", "", "", "the</w>", "th", "@@</w>", "@-@</w>", "", "X</w>"]
    assert model.tokenizer["target_pieces.json"] == model.tokenizer["source_pieces.json"]


@pytest.mark.parametrize("value", ["**x", "[", "..", "x" * 5000, "a\0b", 7])
def test_a_file_of_merges_that_is_none_is_looked_for_by_its_usual_names(tmp_path: Path, value: object) -> None:
    directory = write_small(tmp_path / "en-de", ["@-@"], bpe_codes=value, sentencepiece_model=value)

    assert moses_of(directory)[0]["merges"]


@pytest.mark.parametrize(
    ("name", "content", "is_piece"),
    [
        ("bpecodes", "#version: 0.2\na b\nab c</w>\n", False),
        ("ende30k.fastbpe.code", "a b 100\nab c</w> 90\n", False),
        ("bpe.32000", "a b\nb </w>\n", True),  # of subword-nmt 0.1, which says no version
    ],
)
def test_merges_are_found_and_known_by_what_they_hold(tmp_path: Path, name: str, content: str, is_piece: bool) -> None:
    directory = write_small(tmp_path / "en-de", ["@-@"], content)
    (directory / "bpecodes").rename(directory / name)

    moses, notes = moses_of(directory)

    assert moses["merges"] == ["a b", "b </w>" if is_piece else "ab c</w>"]
    assert moses["end_is_piece"] is is_piece
    assert (moses["source_language"], moses["target_language"], moses["dash_splits"]) == ("en", "de", True)
    assert moses["lower_case"] is False
    assert not [note for note in notes if "dictionar" in note]


def test_how_texts_were_prepared_is_seen_in_the_dictionaries(tmp_path: Path) -> None:
    lines = [[piece.lower() for piece in side if piece != "@-@"] for side in fsmt_dictionaries()]
    unique = [list(dict.fromkeys(side)) for side in lines]
    _, document, _ = random_checkpoint("pre-shared")
    pieces = unique[0][:92]

    moses, notes = moses_of(write_directory(tmp_path / "en-de", document, (pieces, pieces)))

    assert (moses["lower_case"], moses["dash_splits"]) == (True, False)
    assert "the source's dictionary has no capital letters: texts are made lower case" in notes
    assert "the dictionaries have no @-@: words with hyphens are not split at them" in notes


def test_a_sentencepiece_model_is_used_where_pieces_are_its_own(tmp_path: Path) -> None:
    _, document, sides = random_checkpoint("pre-shared")
    lines = [f"\u2581{i}" for i in range(len(sides[0]))]
    directory = write_directory(tmp_path / "en-de", document, (lines, lines))
    (directory / "bpecodes").unlink()

    assert "sentencepiece.model: missing; expected it, or source.spm" in fault_of(directory)
    shutil.copy(MODELS / "marian-shared" / "source.spm", directory / "spm.joint.model")
    model, _ = read_whole(directory)

    assert sorted(model.tokenizer) == ["source.spm", "source_pieces.json"]
    assert json.loads(model.tokenizer["source_pieces.json"]) == ["", "", "", "", *lines]
    assert len(SPECIAL) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 1\n", "dict.en.txt: 1 pieces; expected 341, the rows of the embedding but for four; it is another model's"),
        ("a 1\na 2\n", "dict.en.txt: 'a' twice"),
        ("<pad> 1\n", "dict.en.txt: '<pad>' twice, the first four ids included; expected every piece once"),
        ("a 1\nb\n", "dict.en.txt: the line 'b'; expected a piece and its count"),
        ("", "dict.en.txt: the line ''; expected a piece and its count"),
    ],
)
def test_dictionaries_that_are_wrong_are_named(tmp_path: Path, text: str, expected: str) -> None:
    directory = write_directory(tmp_path / "en-de")
    (directory / "dict.en.txt").write_text(text, encoding="utf-8")

    assert expected in fault_of(directory)


def test_missing_merges_are_named(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "en-de")
    (directory / "bpecodes").unlink()

    assert "bpecodes: missing; expected the merges of its byte-pair encoding; put there what fastBPE" in fault_of(
        directory
    )
