"""What translations begin with: how it becomes ids, what fails alone, and how it stands in the answer."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.errors import DeadlineExceeded, InvalidRequest
from server.models.model import Model
from server.text.markup.html import read_html
from server.text.masked import Restored
from server.text.masking import Masker
from server.text.sentences import split_text
from server.text.source import Given, SplitText
from server.text.splitter import Splitter
from server.translation.legs import Leg
from server.translation.prefixes import add_prefixes, check_prefixes, restored_behind
from tests.server.translation.parts import request

MANY = "dog " * 98  # tokens; a translation has at most 100


@pytest.fixture
def leg(model: Model) -> Leg:
    return Leg(model=model, pair=model.manifest.language_pairs[0], options=DecodingOptions(beam_size=1))


async def begun(leg: Leg, prefixes: Sequence[str], *texts: str) -> list[SplitText]:
    rules = leg.split_rules
    split = [
        split_text(text, "en", rules.encode, rules.max_tokens, num_added=rules.num_added, masker=rules.masker)
        for text in texts
    ]
    return await add_prefixes(split, prefixes, [leg] * len(texts), Splitter(), math.inf)


async def test_the_first_sentence_that_is_translated_begins_with_it(leg: Leg, tokenizer: Tokenizer) -> None:
    (text,) = await begun(leg, ["Ein Hund"], "***\nA dog runs. A man sleeps.")

    copied, first, second = text.sentences
    assert (copied.prefix, second.prefix) == (None, None)
    assert first.prefix == Given("Ein Hund", tokenizer.encode("Ein Hund")[:-1])
    assert leg.options_for(first).target_prefix == first.prefix.ids
    assert leg.options_for(second) is leg.options


@pytest.mark.parametrize("prefixes", [["Ein"], ["Ein", "Ein"]])
async def test_there_is_one_for_each_text_or_one_for_all(leg: Leg, prefixes: list[str]) -> None:
    texts = await begun(leg, prefixes, "A dog runs.", "A man sleeps.")

    assert [text.sentences[0].prefix and text.sentences[0].prefix.text for text in texts] == ["Ein", "Ein"]


async def test_an_empty_one_is_none_and_a_text_without_words_has_none(leg: Leg) -> None:
    texts = await begun(leg, ["", "Ein"], "A dog runs.", "***")

    assert [text.sentences[0].prefix for text in texts] == [None, None]
    assert [text.error for text in texts] == [None, None]


async def test_its_parts_are_shown_as_those_of_the_source(leg: Leg, tokenizer: Tokenizer) -> None:
    masking = dataclasses.replace(leg.model.manifest.masking, num_placeholders=8)
    manifest = dataclasses.replace(leg.model.manifest, masking=masking)
    leg = dataclasses.replace(leg, model=dataclasses.replace(leg.model, manifest=manifest))

    (text,) = await begun(leg, ["Öffnen Sie {name} und"], "Open {name} and https://a.example/b now.")

    (sentence,) = text.sentences
    assert sentence.masked is not None
    assert sentence.prefix is not None
    assert tokenizer.decode(sentence.prefix.ids) == f"Öffnen Sie {sentence.masked.parts[0].carrier} und"


@pytest.mark.parametrize(
    ("options", "prefix", "named"),
    [
        ({}, MANY, ["target_prefixes[1]: ", "at most 97 tokens", "98"]),
        ({}, "x" * (97 * 16 + 1), ["target_prefixes[1]: ", "at most 1552 characters", "1553"]),
        ({"max_output_tokens": 5}, "a dog a dog", ["target_prefixes[1]: ", "at most 2 tokens"]),
        ({"max_output_tokens": 1}, "Zug", ["target_prefixes[1]: ", "at most 0 characters, not 3"]),
        ({"forced_prefix": (5, 6)}, MANY, ["target_prefixes[1]: ", "at most 95 tokens"]),
    ],
)
async def test_one_that_is_too_long_fails_alone(
    leg: Leg, options: dict[str, Any], prefix: str, named: list[str]
) -> None:
    leg = dataclasses.replace(leg, options=dataclasses.replace(leg.options, **options))

    texts = await begun(leg, ["", prefix, ""], "A dog runs.", "A dog runs.", "A dog runs.")

    assert [text.error is None for text in texts] == [True, False, True]
    details = str(texts[1].error)
    assert [each for each in named if each not in details] == []
    assert prefix not in details


async def test_nothing_is_encoded_when_the_time_is_over(leg: Leg) -> None:
    text = SplitText("", ())

    with pytest.raises(DeadlineExceeded):
        await add_prefixes([text] * 3, ["a " * 700], [leg] * 3, Splitter(), 0.0)


def test_what_breaks_a_rule_is_named(leg: Leg) -> None:
    asked = dataclasses.replace(request("a", "b", "c"), target_prefixes=["A", "B"])
    one = dataclasses.replace(asked, target_prefixes=["A"])
    without = dataclasses.replace(leg, options=DecodingOptions(prefix_bias_beta=0.5))
    for wrong, legs, message in (
        (asked, (leg,), "target_prefixes: must be 1, or as many as the texts, 3, not 2"),
        (one, (dataclasses.replace(leg, read=read_html),), "target_prefixes: must be empty for texts with markup"),
        (one, (leg, leg), "target_prefixes: must be empty for texts that go over a language between"),
        (request("a"), (without,), "decoding.prefix_bias_beta: must be 0 without target_prefixes, not 0.5"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            check_prefixes(wrong, legs)
        assert str(caught.value) == message

    check_prefixes(one, (without,))
    check_prefixes(request("a"), (leg, leg))


@pytest.mark.parametrize(
    ("prefix", "behind", "expected"),
    [
        ("Ein Hund", " läuft.", "Ein Hund läuft."),
        ("Ein Hu", "nd läuft.", "Ein Hund läuft."),
        ("  Ein\tHund", " läuft.", "  Ein\tHund läuft."),
        ("Ein Hund ", " läuft.", "Ein Hund läuft."),
        ("Ein  Hund\n", " läuft.", "Ein  Hund\nläuft."),
        ("ein Hund", " läuft.", "ein Hund läuft."),  # although its source begins with a capital
        ("Ein Hund", "", "Ein Hund"),
    ],
)
def test_it_stands_as_it_was_given(tokenizer: Tokenizer, prefix: str, behind: str, expected: str) -> None:
    ids = tokenizer.encode(prefix)[:-1]
    rest = tokenizer.encode(f"x{behind}")[len(tokenizer.encode("x")) - 1 : -1]

    def restore(text: str) -> Restored:
        return Restored(text[:1].upper() + text[1:])

    assert restored_behind(Given(prefix, ids), (*ids, *rest), tokenizer, restore).text == expected


def test_a_part_that_would_stand_in_it_stands_behind_everything(tokenizer: Tokenizer) -> None:
    masker = Masker(carriers=(("\ue000", "\ue001"),), language="de")
    masked = masker.mask("{name} sees that the big dog runs.")
    prefix, whole = (tokenizer.encode(text)[:-1] for text in ("Der große", "Der große Hund läuft."))

    restored = restored_behind(Given("Der große", prefix), whole, tokenizer, masked.restore)

    assert restored.text == "Der große Hund läuft. {name}"
    assert [part.text for part in restored.parts] == ["{name}"]


def test_a_translation_that_does_not_follow_it_stays_as_it_is(tokenizer: Tokenizer) -> None:
    prefix, other = (tokenizer.encode(text)[:-1] for text in ("Eine Katze", "Ein Hund läuft."))

    assert restored_behind(Given("eine katze", prefix), other, tokenizer, Restored).text == "Ein Hund läuft."
