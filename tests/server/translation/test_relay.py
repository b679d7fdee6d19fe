import dataclasses

import pytest

from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Timings
from server.models.model import Model
from server.text.masked import KeptPart, Placement
from server.text.source import SourceSentence
from server.translation.answer import Candidate, TranslatedSentence
from server.translation.legs import Leg
from server.translation.relay import Relay

SOURCE = SourceSentence("Ein Hund. Zwei.", "\n", (5, 6, 3))


def first(text: str, reason: FinishReason = FinishReason.STOP) -> TranslatedSentence:
    timings = Timings(queue_seconds=1.0, encode_seconds=2.0, decode_seconds=3.0)
    return TranslatedSentence(SOURCE, (Candidate(text, -0.5, 4, reason),), timings)


@pytest.fixture
def leg(model: Model) -> Leg:
    return Leg(model=model, pair=model.manifest.language_pairs[0], options=DecodingOptions())


def complete(relay: Relay, *texts: tuple[str, ...]) -> None:
    """Gives each piece that is not there yet its candidates, of 2 tokens and -1 and worse."""
    waiting = [index for index in range(len(relay.middle.split.sentences)) if index not in relay.middle.sentences]
    for index, candidates in zip(waiting, texts, strict=True):
        assert not relay.is_complete
        made = tuple(Candidate(text, -1.0 - rank, 2, FinishReason.STOP) for rank, text in enumerate(candidates))
        source = relay.middle.split.sentences[index]
        relay.middle.sentences[index] = TranslatedSentence(source, made, Timings(decode_seconds=1.0 + index))


def test_a_sentence_is_what_the_second_leg_makes_of_the_firsts_best(leg: Leg) -> None:
    relay = Relay.begin(first("A dog."), leg)
    (piece,) = relay.middle.split.sentences
    complete(relay, ("Un chien.", "Le chien."))
    sentence = relay.end(2)

    assert piece.source_ids == leg.model.tokenizer.encode("A dog.")
    assert sentence.source is SOURCE
    assert [(each.text, each.score, each.num_tokens) for each in sentence.candidates] == [
        ("Un chien.", -1.5, 2),
        ("Le chien.", -2.5, 2),
    ]
    assert sentence.timings == Timings(queue_seconds=1.0, encode_seconds=2.0, decode_seconds=4.0)


def test_what_has_become_several_sentences_is_put_together_again(leg: Leg) -> None:
    relay = Relay.begin(first("A dog runs. *** Two men sit."), leg)
    pieces = relay.middle.split.sentences
    complete(relay, *[(f"{number}",) for number in range(sum(each.source_ids is not None for each in pieces))])
    sentence = relay.end(1)

    assert len(pieces) > 1
    assert sentence.candidates[0].text == relay.middle.text(0)
    assert sentence.candidates[0].num_tokens == relay.middle.num_target_tokens
    assert sentence.candidates[0].score == -1.5


@pytest.mark.parametrize("text", ["", " ", "***", "42"])
def test_what_has_no_letter_needs_no_second_leg(leg: Leg, text: str) -> None:
    relay = Relay.begin(first(text), leg)

    assert relay.is_complete
    assert [(each.text, each.score) for each in relay.end(2).candidates] == [(text, -0.5)] * 2


@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH])
def test_what_a_limit_stopped_on_either_leg_is_marked(leg: Leg, reason: FinishReason) -> None:
    relay = Relay.begin(first("A dog.", reason), leg)
    complete(relay, ("Un chien.",))

    assert relay.end(1).candidates[0].finish_reason is reason


def test_what_either_leg_has_lost_is_told(leg: Leg) -> None:
    lost, placed = KeptPart("1912", Placement.MISSING), KeptPart("{name}", Placement.BY_MODEL)
    relay = Relay.begin(dataclasses.replace(first("A dog."), kept=(placed, lost)), leg)
    complete(relay, ("Un chien.",))
    own = KeptPart("{name}", Placement.BY_POSITION)
    relay.middle.sentences[0] = dataclasses.replace(relay.middle.sentences[0], kept=(own,))

    assert relay.end(1).kept == (own, lost)
