"""The rules for what looks at whole rows of logits."""

from typing import Any

import pytest

from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.errors import InvalidRequest
from server.translation.rules import with_phrases

SECRET = "secret text"


def test_phrases_become_ids_as_given_and_with_a_capital(tokenizer: Tokenizer) -> None:
    options = with_phrases(DecodingOptions(), ["a dog"], tokenizer, "m")

    assert [tokenizer.decode(ids) for ids in options.suppressed] == ["a dog", "A dog"]
    assert with_phrases(DecodingOptions(), [], tokenizer, "m") == DecodingOptions()


@pytest.mark.parametrize(
    ("phrases", "options", "named"),
    [
        (["a"] * 101, {}, ["decoding.suppress: ", "0 to 100 phrases", "101"]),
        (["a", ""], {}, ["decoding.suppress[1]: ", "1 to 100 characters", "0"]),
        ([SECRET * 10], {}, ["decoding.suppress[0]: ", "1 to 100 characters", "110"]),
        (["dog"], {"use_shortlist": True}, ["decoding.use_shortlist: ", "must be false", "whole vocabulary"]),
        ([], {"use_shortlist": True, "no_repeat_ngram_size": 2}, ["decoding.use_shortlist: ", "must be false"]),
    ],
)
def test_what_breaks_a_rule_is_named(
    tokenizer: Tokenizer, phrases: list[str], options: dict[str, Any], named: list[str]
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        with_phrases(DecodingOptions(**options), phrases, tokenizer, "m")

    assert str(caught.value).startswith(named[0])
    assert [word for word in named if word not in str(caught.value)] == []
    assert SECRET not in str(caught.value)


def test_a_shortlist_goes_with_what_does_not_look_at_logits(tokenizer: Tokenizer) -> None:
    asked = DecodingOptions(use_shortlist=True, patience=2.0, end_loops=True)

    assert with_phrases(asked, [], tokenizer, "m") == asked
