"""One side's vocabulary; `test_tokenizer` and `test_tokenizer_faults` have its models and faults."""

import json

import pytest
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from server.bundle.sentence_pieces import open_model, read_table
from tests.expanding import WRITTEN_FOR, expanding, small_model, wordy_about_the_unknown


def test_a_table_is_a_list_of_different_pieces() -> None:
    faults: list[str] = []

    assert read_table("pieces.json", json.dumps(["a", "", "b", ""]).encode(), faults) == ("a", "", "b", "")
    assert faults == []
    assert read_table("pieces.json", json.dumps(["a", "b", "a"]).encode(), faults) == ()
    assert faults == ["pieces.json: has 'a' 2 times"]
    faults.clear()
    assert read_table("pieces.json", json.dumps(["a", "b" * 1001]).encode(), faults) == ()
    assert faults == ["pieces.json: has a piece of 1001 characters, at most 1000 are read"]


def test_a_piece_of_a_model_is_no_long_text() -> None:
    proto = ModelProto.FromString(small_model())
    longest = proto.pieces.add(piece="x" * 1000)

    assert "x" * 1000 in open_model(proto.SerializeToString()).EncodeAsPieces("x" * 1000)[-1]
    longest.piece += "x"
    with pytest.raises(ValueError, match=r"^has a piece of 1001 characters, at most 1000 are read$"):
        open_model(proto.SerializeToString())


@pytest.mark.parametrize("spec", ["normalizer_spec", "denormalizer_spec"])
def test_a_character_becomes_no_long_text(spec: str) -> None:
    model = open_model(expanding(64, spec=spec))

    assert ("x" * 64 in model.EncodeAsPieces(WRITTEN_FOR)) == (spec == "normalizer_spec")
    with pytest.raises(ValueError, match=r"^writes 65 bytes in place of a character, at most 64 are taken$"):
        open_model(expanding(65, spec=spec))


def test_the_unknown_token_becomes_no_long_text() -> None:
    model = open_model(wordy_about_the_unknown(64))

    assert model.decode([model.unk_id()]) == "x" * 64
    with pytest.raises(ValueError, match=r"^writes 65 bytes in place of a character, at most 64 are taken$"):
        open_model(wordy_about_the_unknown(65))
