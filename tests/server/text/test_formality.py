"""The words that translations of a formality do not have."""

import pytest

from server.text.formality import Formality, has_formality, speaks_of_others, unwanted_words


def test_each_way_leaves_out_the_words_of_the_other() -> None:
    formal = unwanted_words(Formality.MORE, "en", "de-AT")
    informal = unwanted_words(Formality.LESS, "en-US", "de")

    assert formal is not None
    assert informal is not None
    assert {"du", "Du", "dir", "euch", "seid"} <= set(formal.always)
    assert (formal.to_reader, informal.always) == (("ihr",), ())
    assert {"Sie", "Ihnen"} <= set(informal.to_reader)
    assert "sie" not in informal.to_reader
    assert unwanted_words(Formality.PREFER_MORE, "en", "de") == formal
    assert unwanted_words(Formality.PREFER_LESS, "en", "de") == informal


@pytest.mark.parametrize(("source", "target"), [("fr", "de"), ("en", "fr"), ("de", "en"), ("", "")])
def test_other_languages_have_none(source: str, target: str) -> None:
    assert not has_formality(source, target)
    assert unwanted_words(Formality.MORE, source, target) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She sings.", True),
        ("THEY run, and it rains.", True),
        ("Do you see her?", False),
        ("Is it your dog?", False),
        ("A dog runs.", False),
        ("The theory fits.", False),
        ("", False),
    ],
)
def test_a_sentence_speaks_of_others_or_to_its_reader(text: str, expected: bool) -> None:
    assert speaks_of_others(text) is expected
