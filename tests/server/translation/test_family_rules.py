"""What may be asked of a model by its family: the rules, and requests to a real model that writes all words at once."""

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from server.bundle.bundle import Bundle
from server.decoding.options import Sampling
from server.errors import InvalidRequest
from server.models.loading import load_model
from server.models.model import Model
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.text.formality import Formality
from server.text.glossary import Glossary
from server.text.term_table import Term
from server.translation.answer import TextAnswer
from server.translation.memory import MemoryBudget
from server.translation.request import TranslationRequest
from server.translation.translator import Translator
from tests.server.echo_engine import catalogue_of
from tests.server.translation.parts import request

SENTENCE = "A man in a blue shirt is standing on a ladder."


@pytest_asyncio.fixture
async def one_pass(one_pass_bundle: Bundle, metrics: Metrics) -> AsyncIterator[Translator]:
    """A translator with the one-pass model on a lane of its own."""
    model = load_model(Settings(bundle=one_pass_bundle.directory, variant="cpu-fp32", lanes=1), metrics)
    yield Translator(
        catalogue_of(model),
        beam_size=1,
        max_request_seconds=60.0,
        memory=MemoryBudget(1 << 30),
        metrics=metrics.access,
    )
    model.stop()


async def answers_of(translator: Translator, asked: TranslationRequest) -> list[TextAnswer]:
    with await translator.accept(asked) as job:
        await job.finish()
        return list(job.answers)


async def test_it_translates(one_pass: Translator) -> None:
    (answer,) = await answers_of(one_pass, request(SENTENCE))

    assert answer.text(0)
    assert answer.score(0) < 0


@pytest.mark.parametrize("beam_size", [1, 4])
async def test_every_sentence_has_the_tokens_that_are_asked_for(one_pass: Translator, beam_size: int) -> None:
    text = f"{SENTENCE} Two dogs play."
    for number in (1, 4, 8):
        (answer,) = await answers_of(one_pass, request(text, beam_size=beam_size, exact_tokens=number))
        assert [candidate.num_tokens for candidate in answer.candidates(0)] == [number, number]
    for ratio in (0.3, 1.0, 2.0):
        (answer,) = await answers_of(one_pass, request(text, beam_size=beam_size, ratio=ratio))
        for sentence in answer.in_order():
            assert sentence.candidates[0].num_tokens == int(ratio * sentence.source.num_tokens + 0.5)


async def test_a_length_that_a_sentence_cannot_have_fails_its_text_alone(one_pass: Translator) -> None:
    short, long = await answers_of(one_pass, request("A man.", SENTENCE, exact_tokens=24))

    assert isinstance(short.error, InvalidRequest)
    assert str(short.error).startswith("decoding.exact_tokens: must be at most")
    assert long.error is None
    assert long.num_target_tokens == 24


@pytest.mark.parametrize(
    ("decoding", "field"),
    [
        ({"length_penalty": 0.5}, "decoding.length_penalty"),
        ({"max_output_tokens": 9}, "decoding.max_output_tokens"),
        ({"min_output_tokens": 2}, "decoding.min_output_tokens"),
        ({"repetition_penalty": 1.5}, "decoding.repetition_penalty"),
        ({"no_repeat_ngram_size": 3}, "decoding.no_repeat_ngram_size"),
        ({"patience": 2.0}, "decoding.patience"),
        ({"sampling": Sampling(temperature=0.5)}, "decoding.sampling"),
        ({"end_loops": True}, "decoding.end_loops"),
        ({"return_alternatives": True}, "decoding.return_alternatives"),
        ({"min_alternative_expansion_prob": 0.5}, "decoding.min_alternative_expansion_prob"),
        ({"prefix_bias_beta": 0.5}, "decoding.prefix_bias_beta"),
        ({"min_length_ratio": 0.5}, "decoding.min_length_ratio"),
        ({"max_length_ratio": 1.5}, "decoding.max_length_ratio"),
        ({"coverage_penalty": 0.5}, "decoding.coverage_penalty"),
        ({"use_shortlist": True}, "decoding.use_shortlist"),
        ({"suppress": ("Mann",)}, "decoding.suppress"),
        ({"exact_tokens": 0}, "decoding.exact_tokens"),
        ({"exact_tokens": 1000}, "decoding.exact_tokens"),
        ({"ratio": 0.0}, "decoding.ratio"),
        ({"ratio": 2.5}, "decoding.ratio"),
        ({"ratio": float("nan")}, "decoding.ratio"),
        ({"ratio": 1.0, "beam_size": 4, "num_hypotheses": 2}, "decoding.num_hypotheses"),
    ],
)
async def test_options_that_it_cannot_obey_are_refused_by_name(
    one_pass: Translator, decoding: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        await one_pass.accept(request(SENTENCE, **decoding))

    assert error.value.field == field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"with_alignment": True}, "output.include_alignment"),
        ({"with_tokens": True}, "output.include_tokens"),
        ({"with_search": True}, "output.include_search"),
        ({"with_confidence": True}, "output.include_confidence"),
        ({"target_prefixes": ["Ein"]}, "target_prefixes"),
        ({"formality": Formality.LESS}, "formality"),
        ({"glossary": Glossary((Term(("man",), ("Kerl",)),))}, "glossary"),
        ({"targets": ["Ein Mann."]}, "model"),
    ],
)
async def test_what_else_it_cannot_do_is_refused_by_name(
    one_pass: Translator, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        await one_pass.accept(dataclasses.replace(request(SENTENCE), source_language_code="en", **changes))

    assert error.value.field == field


async def test_what_changes_nothing_is_taken(one_pass: Translator) -> None:
    decoding: dict[str, Any] = {"length_penalty": 1.0, "use_shortlist": False, "patience": 1.0, "end_loops": False}
    asked = dataclasses.replace(request(SENTENCE, **decoding), formality=Formality.PREFER_LESS)

    (answer,) = await answers_of(one_pass, asked)

    assert answer.error is None


@pytest.mark.parametrize("decoding", [{"exact_tokens": 4}, {"ratio": 1.0}])
async def test_a_model_that_writes_a_token_at_a_time_obeys_no_length(
    translator: Translator, model: Model, decoding: dict[str, Any]
) -> None:
    (name,) = decoding
    with pytest.raises(InvalidRequest, match=f"decoding.{name}: must be left out: the model {model.manifest.name}"):
        await translator.accept(request(SENTENCE, **decoding))
