"""One side's vocabulary; `test_tokenizer` and `test_tokenizer_faults` have its models and faults."""

import json

from server.bundle.sentence_pieces import read_table


def test_a_table_is_a_list_of_different_pieces() -> None:
    faults: list[str] = []

    assert read_table("pieces.json", json.dumps(["a", "", "b", ""]).encode(), faults) == ("a", "", "b", "")
    assert faults == []
    assert read_table("pieces.json", json.dumps(["a", "b", "a"]).encode(), faults) == ()
    assert faults == ["pieces.json: has 'a' 2 times"]
