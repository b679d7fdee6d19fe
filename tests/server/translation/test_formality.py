"""A request's formality as tokens that its search does not write."""

import dataclasses

import pytest

from server.bundle.languages import LanguagePair
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.errors import InvalidRequest
from server.models.model import Model
from server.text.formality import Formality
from server.text.source import SourceSentence
from server.translation.formality import formality_bans
from server.translation.legs import Leg

EN_DE, EN_FR = (LanguagePair(source="en", target=target) for target in ("de", "fr"))
PLAIN = DecodingOptions()


def test_the_words_become_tokens(tokenizer: Tokenizer) -> None:
    always, to_reader = formality_bans(Formality.MORE, PLAIN, tokenizer, EN_DE, is_only=True)

    assert {"du", "Dein"} <= {tokenizer.decode(ids) for ids in always}
    assert [tokenizer.decode(ids) for ids in to_reader] == ["ihr"]


@pytest.mark.parametrize("pair", [EN_DE, EN_FR])
def test_none_changes_nothing(tokenizer: Tokenizer, pair: LanguagePair) -> None:
    assert formality_bans(None, PLAIN, tokenizer, pair, is_only=False) == ((), ())


@pytest.mark.parametrize(("pair", "is_only"), [(EN_FR, True), (EN_DE, False)])
def test_a_wish_that_cannot_be_had_changes_nothing(tokenizer: Tokenizer, pair: LanguagePair, is_only: bool) -> None:
    assert formality_bans(Formality.PREFER_LESS, PLAIN, tokenizer, pair, is_only=is_only) == ((), ())


@pytest.mark.parametrize(
    ("pair", "is_only", "options", "words"),
    [
        (EN_FR, True, PLAIN, "formality: must be unspecified or a preference from en into fr"),
        (EN_DE, False, PLAIN, "formality: must be unspecified over a language between"),
        (EN_DE, True, DecodingOptions(use_shortlist=True), "decoding.use_shortlist: must be false with a formality"),
    ],
)
def test_what_cannot_be_had_is_refused(
    tokenizer: Tokenizer, pair: LanguagePair, is_only: bool, options: DecodingOptions, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        formality_bans(Formality.LESS, options, tokenizer, pair, is_only=is_only)


def test_a_sentence_that_speaks_of_others_may_have_their_words(model: Model) -> None:
    leg = Leg(model=model, pair=EN_DE, options=DecodingOptions(suppressed=((7,),)), to_reader=((8, 9),))
    to_reader, of_others = (SourceSentence(text, "", (5,)) for text in ("You run.", "They run."))

    assert leg.options_for(to_reader).suppressed == ((7,), (8, 9))
    assert leg.options_for(of_others).suppressed == ((7,),)
    assert leg.options_for(to_reader) is leg.options_for(to_reader)  # so that sentences are submitted together
    assert dataclasses.replace(leg, to_reader=()).options_for(to_reader) == leg.options
