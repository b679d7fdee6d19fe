"""Pairs as they are shown to an engine, and which of them fail alone."""

import dataclasses
import math

import pytest

from server.decoding.options import DecodingOptions
from server.errors import DeadlineExceeded, InvalidRequest, ModelNotFound
from server.models.model import Model
from server.text.source import SplitText
from server.text.splitter import Splitter
from server.translation.legs import Leg
from server.translation.pairs import direct_routes, encode_pairs
from server.translation.routes import Routes
from server.translation.translator import Translator
from tests.server.conftest import EOS
from tests.server.echo_engine import EchoEngine
from tests.server.translation.parts import of_pairs, request

SOURCE, TARGET = "A dog runs.", "A man in a red shirt."


@pytest.fixture
def leg(model: Model) -> Leg:
    return Leg(model=model, pair=model.manifest.language_pairs[0], options=DecodingOptions(beam_size=1))


async def encoded(leg: Leg, source: str, target: str) -> SplitText:
    (pair,) = await encode_pairs([source], [target], leg, Splitter(), math.inf)
    return pair


async def test_a_pair_is_one_sentence_with_its_translation(leg: Leg, model: Model) -> None:
    pair = await encoded(leg, "A dog. It runs\nto {0}.", TARGET)

    (sentence,) = pair.sentences
    assert sentence.source_ids == model.tokenizer.encode("A dog. It runs\nto {0}.")
    assert sentence.given is not None
    assert sentence.given.ids[-1] == EOS
    assert model.tokenizer.decode(sentence.given.ids) == sentence.given.text == TARGET


async def test_a_translation_may_be_empty_but_not_a_source(leg: Leg) -> None:
    pair = await encoded(leg, SOURCE, "")
    assert pair.sentences[0].given is not None
    assert pair.sentences[0].given.ids == (EOS,)

    pair = await encoded(leg, " ", TARGET)
    assert str(pair.error) == "pairs[0].source: must be from 2 to 64 tokens, with those that the model adds, not 1"


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [
        ("dog " * 80, TARGET, ["pairs[1].source", "from 2 to 64 tokens"]),
        (SOURCE, "dog " * 120, ["pairs[1].target", "at most 100 tokens"]),
        ("x" * (64 * 16 + 1), TARGET, ["pairs[1].source", "1024 characters", "1025"]),
        (SOURCE, " " * (100 * 16 + 1), ["pairs[1].target", "1600 characters", "1601"]),
    ],
)
async def test_a_text_beyond_a_limit_fails_alone(leg: Leg, source: str, target: str, named: list[str]) -> None:
    good, bad = await encode_pairs([SOURCE, source], [TARGET, target], leg, Splitter(), math.inf)

    assert (good.error, bad.sentences) == (None, ())
    assert all(each in str(bad.error) for each in named)


async def test_of_many_pairs_each_keeps_its_place(leg: Leg) -> None:
    pairs = await encode_pairs([SOURCE] * 300, [f"{number} dogs" for number in range(300)], leg, Splitter(), math.inf)

    assert [pair.sentences[0].given.text for pair in pairs if pair.sentences[0].given] == [
        f"{number} dogs" for number in range(300)
    ]


async def test_nothing_more_is_encoded_when_the_deadline_has_passed(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded_sources: list[str] = []
    monkeypatch.setattr(leg.model.tokenizer, "encode", lambda text, _=(): encoded_sources.append(text))

    with pytest.raises(DeadlineExceeded):
        await encode_pairs([SOURCE] * 300, [TARGET] * 300, leg, Splitter(), 0.0)

    assert encoded_sources == []


def test_a_pair_has_one_model_and_no_detected_language(model: Model) -> None:
    there, back = of_pairs(model, "one", "en-de"), of_pairs(model, "two", "fr-en")
    table = Routes((there.manifest, back.manifest), (), ("en",))

    (route,) = direct_routes(table, dataclasses.replace(request("Hi."), source_language_code="en"))
    assert route.legs[0].manifest.name == "one"
    for source in ("fr", "", "auto"):
        with pytest.raises(InvalidRequest, match=r"source_language_code: must be .* directly"):
            direct_routes(table, dataclasses.replace(request("Hi."), source_language_code=source))
    with pytest.raises(ModelNotFound):
        direct_routes(table, request("Hi.", model="three"))


async def test_each_pair_is_submitted_with_its_own_target(
    translator: Translator, engine: EchoEngine, model: Model
) -> None:
    asked = dataclasses.replace(request(SOURCE, SOURCE, beam_size=1), targets=(TARGET, "dogs"), with_tokens=True)

    with await translator.accept(asked) as job:
        await job.finish()

    encode = model.tokenizer.encode_target
    assert [options.given_targets for options in engine.options] == [(encode(TARGET),), (encode("dogs"),)]
    assert {options.beam_size for options in engine.options} == {1}
    assert [answer.error for answer in job.answers] == [None, None]


async def test_no_pairs_are_refused_by_their_own_name(translator: Translator) -> None:
    with pytest.raises(InvalidRequest, match="pairs: must be from 1 to 1024 pairs, not 0"):
        await translator.accept(dataclasses.replace(request(), targets=()))
