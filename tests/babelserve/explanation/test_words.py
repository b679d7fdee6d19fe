import pytest

from babelserve.explanation.words import row, texts_of, words_of
from babelserve.results import Sentence
from tests.babelserve.explanation.sentences import Reader, link, sentence


def test_words_know_their_counterparts_both_ways() -> None:
    one = sentence()
    sources, targets = words_of(one)

    assert texts_of(one.source_text, sources) == ["A", "<", "b", ">", "dog", "runs", "."]
    assert texts_of(one.text, targets) == ["Ein", "Hund", "läuft", "."]
    assert [word.links for word in sources] == [{0: 0.75, 1: 0.25}, {}, {}, {}, {1: 0.5}, {2: 0.25}, {}]
    assert [word.links for word in targets] == [{0: 0.75}, {4: 0.5, 0: 0.25}, {5: 0.25}, {}]


def test_a_words_probability_is_that_of_its_tokens_together() -> None:
    _, targets = words_of(sentence())

    assert [word.log_prob for word in targets] == [-0.125, -1.0, -2.0, 0.0]
    assert all(word.log_prob is None for word in words_of(sentence(tokens=()))[1])


def test_a_link_of_several_words_is_one_of_each() -> None:
    _, targets = words_of(sentence(links=(link(6, 9, 0, 8, 0.5),)))

    assert [word.links for word in targets] == [{4: 0.5}, {4: 0.5}, {}, {}]


def test_each_word_says_what_it_stands_for() -> None:
    one = sentence()
    sources, targets = words_of(one)
    before = Reader(row(one.source_text, sources, texts_of(one.text, targets)))
    after = Reader(row(one.text, targets, texts_of(one.source_text, sources)))

    assert "".join(text for _, text in before.texts) == one.source_text
    assert [each.get("data-l") for each in after.words()] == ["0", "4 0", "5", None]
    assert [each["class"] for each in after.words()] == ["w", "w u2 t", "w u3", "w"]
    assert [each["class"] for each in before.words()][4:6] == ["w t", "w t missed"]
    assert after.words()[1]["data-say"] == "Hund: dog (0.50), A (0.25); probability 37%; a term"
    assert before.words()[1]["data-say"] == "<: no word of the other side"
    assert before.words()[5]["data-say"] == "runs: läuft (0.25); a term that the translation lacks"


@pytest.mark.parametrize("text", ["", "  ", "...", "\U0001f600"])
def test_any_text_has_words(text: str) -> None:
    one: Sentence = sentence(source_text=text, text=text, links=(link(0, 1, 0, 1, 1.0),), terms=(), tokens=())
    sources, targets = words_of(one)

    assert Reader(row(text, sources, texts_of(text, targets))).rawdata == ""
