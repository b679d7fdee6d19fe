"""The service behind a real gRPC server; the engine echoes."""

import asyncio
import dataclasses
import time
from typing import Any

import grpc
import pytest

from babelserve.v1 import glossary_store_pb2 as store_pb
from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.glossary_store_pb2_grpc import GlossaryStoreStub
from server.bundle.languages import Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import Manifest
from server.bundle.tokenizer import Tokenizer
from server.errors import Overloaded
from server.models.model import Model
from server.telemetry.metrics import METHODS
from tests.server.conftest import Live
from tests.server.echo_engine import EchoEngine, catalogue_of
from tests.server.rpc.parts import request, streamed, told

INVALID = grpc.StatusCode.INVALID_ARGUMENT
SECRET = "secret text"


async def test_texts_are_answered_in_their_order_with_their_white_space(live: Live) -> None:
    contents = ["  One dog runs. Two dogs run.\n\nThree!  ", "", " \n", "A man sits."]

    response = await live.stub.Translate(request(*contents))

    assert [translation.text for translation in response.translations] == contents
    assert (response.model, response.model_version) == ("echo", "7")
    assert all(translation.finish_reason == pb.FINISH_REASON_STOP for translation in response.translations)
    assert response.timings.queue_seconds == 0.25
    assert response.timings.encode_seconds == 0.5
    assert response.timings.decode_seconds == 1.0
    assert response.timings.total_seconds > 0


async def test_tokens_scores_and_sentences_are_told(live: Live, tokenizer: Tokenizer) -> None:
    response = await live.stub.Translate(
        request("A dog runs.\n*** A man sits.", output=pb.OutputOptions(include_sentences=True))
    )

    (translation,) = response.translations
    assert [(s.source_text, s.separator) for s in translation.sentences] == [
        ("A dog runs.", "\n"),
        ("*** A man sits.", ""),
    ]
    counts = [len(tokenizer.encode(text)) - 1 for text in ("A dog runs.", "A man sits.")]  # the mark is cut off
    assert [s.source_tokens for s in translation.sentences] == counts
    assert [s.target_tokens for s in translation.sentences] == counts
    assert translation.source_tokens == translation.target_tokens == sum(counts)
    assert translation.score == -1.0


async def test_a_text_without_a_letter_is_copied(live: Live, engine: EchoEngine) -> None:
    response = await live.stub.Translate(request("*** 42 \U0001f600"))

    assert response.translations[0].text == "*** 42 \U0001f600"
    assert response.translations[0].score == 0.0
    assert engine.futures == []


async def test_hypotheses_join_each_sentences_candidates(live: Live) -> None:
    decoding = pb.DecodingOptions(beam_size=3, num_hypotheses=2)

    response = await live.stub.Translate(request("A dog runs. A man sits.", decoding=decoding))

    (translation,) = response.translations
    assert [h.text for h in translation.hypotheses] == ["A dog runs. A man sits.", "A dog runs A man sits"]
    assert [h.score for h in translation.hypotheses] == [-1.0, -2.0]
    assert translation.text == translation.hypotheses[0].text


async def test_a_sentence_that_a_limit_stopped_is_marked(live: Live) -> None:
    decoding = pb.DecodingOptions(max_output_tokens=1)

    response = await live.stub.Translate(request("A dog runs over a field.", decoding=decoding))

    assert response.translations[0].finish_reason == pb.FINISH_REASON_LENGTH


async def test_absent_options_take_the_servers_defaults(live: Live, engine: EchoEngine) -> None:
    await live.stub.Translate(request("A dog runs."))

    (options,) = engine.options
    assert (options.beam_size, options.num_hypotheses, options.length_penalty) == (4, 1, 1.0)
    assert options.max_output_tokens is None
    assert options.with_scores


async def test_scores_can_be_declined(live: Live, engine: EchoEngine) -> None:
    await live.stub.Translate(request("A dog runs.", decoding=pb.DecodingOptions(beam_size=1, with_scores=False)))
    await live.stub.Translate(request("A dog runs.", decoding=pb.DecodingOptions(beam_size=1, with_scores=True)))

    assert [options.with_scores for options in engine.options] == [False, True]


async def test_a_request_without_a_deadline_gets_the_servers(live: Live, engine: EchoEngine) -> None:
    before = time.monotonic()

    await live.stub.Translate(request("A dog runs."))
    await live.stub.Translate(request("A dog runs."), timeout=20)
    await live.stub.Translate(request("A dog runs."), timeout=5000)

    seconds = [deadline - before for deadline in engine.deadlines]
    assert [0 < each - bound < 15 for each, bound in zip(seconds, [60, 20 - 10, 60], strict=True)] == [True] * 3


async def test_the_stream_sends_sentences_as_they_finish_with_their_places(live: Live, engine: EchoEngine) -> None:
    engine.is_holding = True
    call = live.stub.TranslateStream(
        pb.TranslateStreamRequest(request=request(" One dog. Two dogs.", "--- Three dogs.\n***", "\n"))
    )
    received = [await call.read(), await call.read()]  # the empty text, and what is copied
    for index in (2, 1, 0):
        engine.release(index)
        received.append(await call.read())
    end = await call.read()

    assert end is grpc.aio.EOF  # type: ignore[attr-defined]
    assert [(m.content_index, m.sentence_index, m.sentence_count, m.sentence.text) for m in received] == [
        (2, 0, 0, ""),
        (1, 1, 2, "***"),
        (1, 0, 2, "--- Three dogs."),
        (0, 1, 2, "Two dogs."),
        (0, 0, 2, "One dog."),
    ]
    assert [m.leading for m in received] == ["\n", "", "", "", " "]


async def test_stream_and_unary_give_the_same(live: Live) -> None:
    text = "  One dog. Two dogs.\n\n* Three dogs? (Four) dogs! "

    response = await live.stub.Translate(request(text))
    messages = await streamed(live, text)

    ordered = sorted(messages, key=lambda m: m.sentence_index)
    assert ordered[0].leading + "".join(m.sentence.text + m.sentence.separator for m in ordered) == text
    assert response.translations[0].text == text


@pytest.mark.parametrize("method", ["Translate", "TranslateStream"])
async def test_a_caller_who_leaves_takes_the_sentences_along(live: Live, engine: EchoEngine, method: str) -> None:
    engine.is_holding = True
    call: Any
    if method == "Translate":
        call = live.stub.Translate(request("One dog. Two dogs.", "Three dogs."))
    else:
        call = live.stub.TranslateStream(
            pb.TranslateStreamRequest(request=request("One dog. Two dogs.", "Three dogs."))
        )
    await engine.submitted.wait()

    call.cancel()
    await live.running.wait_until_idle()

    assert [future.cancelled() for future in engine.futures] == [True] * 3


async def test_a_passed_deadline_takes_the_sentences_along(live: Live, engine: EchoEngine, metrics: Any) -> None:
    engine.is_holding = True

    code, _ = await told(live.stub.Translate(request("One dog."), timeout=1.0))
    await live.running.wait_until_idle()

    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert engine.futures[0].cancelled()
    labels = {"method": "Translate", "code": "DEADLINE_EXCEEDED"}
    assert metrics.registry.get_sample_value("babelserve_requests_total", labels) == 1


async def test_long_texts_are_split_off_the_event_loop(live: Live, engine: EchoEngine) -> None:
    text = "A dog runs over the field. " * 600

    response = await live.stub.Translate(request(text))

    assert response.translations[0].text == text
    assert len(engine.futures) == 600


async def test_a_full_server_refuses_before_it_splits(live: Live, engine: EchoEngine, metrics: Any) -> None:
    engine.refuses = Overloaded("queue is full", "tokens")

    code, _ = await told(live.stub.Translate(request("A dog runs.")))

    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    value = metrics.registry.get_sample_value
    assert value("babelserve_request_source_tokens_count", {"model": "echo", "version": "7"}) == 0
    assert value("babelserve_queue_rejected_total", {"reason": "tokens"}) == 1


async def test_models_are_listed(live: Live) -> None:
    response = await live.stub.ListModels(pb.ListModelsRequest())

    assert response.models[0] == pb.ModelInfo(
        name="echo",
        version="7",
        variant="cpu-fp32",
        language_pairs=[pb.LanguagePair(source_language_code="en", target_language_code="de")],
        max_beam_size=8,
        max_source_tokens=64,
        max_target_tokens=100,
        source_language_codes=["en"],
        target_language_codes=["de"],
        family="transformer",
    )


async def test_a_model_of_many_languages_lists_both_sets_and_says_what_was_meant(
    live: Live, model: Model, manifest: Manifest
) -> None:
    languages = Languages(
        source={"en": SourceLanguage(), "zh-Hant": SourceLanguage()}, target={"de": TargetLanguage(prefix=(9,))}
    )
    polyglot = dataclasses.replace(manifest, language_pairs=(), languages=languages)
    live.translator.catalogue = catalogue_of(dataclasses.replace(model, manifest=polyglot))

    (listed,) = (await live.stub.ListModels(pb.ListModelsRequest())).models
    response = await live.stub.Translate(
        pb.TranslateRequest(contents=["Hi."], source_language_code="zh_TW", target_language_code="deu")
    )

    assert not listed.language_pairs
    assert (listed.source_language_codes, listed.target_language_codes) == (["en", "zh-Hant"], ["de"])
    assert (response.source_language_code, response.target_language_code) == ("zh-Hant", "de")


@pytest.mark.parametrize("message", [request("Hi."), pb.ListModelsRequest()])
async def test_without_a_model_calls_are_unavailable(live: Live, message: Any) -> None:
    live.translator.catalogue = catalogue_of()
    method = live.stub.ListModels if isinstance(message, pb.ListModelsRequest) else live.stub.Translate

    assert (await told(method(message)))[0] == grpc.StatusCode.UNAVAILABLE


def test_every_method_of_the_contract_has_a_handler_and_a_metric_label() -> None:
    services = [
        pb.DESCRIPTOR.services_by_name["TranslationService"],
        store_pb.DESCRIPTOR.services_by_name["GlossaryStore"],
    ]
    methods = {method.name for service in services for method in service.methods}

    assert set(METHODS) - {"other"} == methods


async def test_glossaries_of_callers_are_kept(live: Live) -> None:
    store = GlossaryStoreStub(live.channel)
    dictionary = store_pb.Dictionary(
        source_language_code="en",
        target_language_code="de",
        terms=[store_pb.DictionaryTerm(source="dog", target="Hund")],
    )

    kept = await store.PutKeptGlossary(
        store_pb.PutKeptGlossaryRequest(glossary=store_pb.KeptGlossary(title="Dogs", dictionaries=[dictionary]))
    )

    assert (await store.GetKeptGlossary(store_pb.GetKeptGlossaryRequest(id=kept.id))).dictionaries[
        0
    ].terms == dictionary.terms
    assert list((await store.ListKeptGlossaries(store_pb.ListKeptGlossariesRequest())).glossaries) == [kept]
    await store.DeleteKeptGlossary(store_pb.DeleteKeptGlossaryRequest(id=kept.id))
    code, words = await told(store.GetKeptGlossary(store_pb.GetKeptGlossaryRequest(id=kept.id)))
    assert (code, words.partition(":")[0]) == (grpc.StatusCode.NOT_FOUND, "id")


async def test_requests_at_once_get_their_own_answers(live: Live) -> None:
    texts = [f"Dog number {index} runs." for index in range(50)]

    responses = await asyncio.gather(*(live.stub.Translate(request(text)) for text in texts))

    assert [response.translations[0].text for response in responses] == texts


async def test_pivots_are_listed_with_the_models(live: Live) -> None:
    live.translator.pivots = ["en", "fr"]

    response = await live.stub.ListModels(pb.ListModelsRequest())

    assert list(response.pivot_language_codes) == ["en", "fr"]


async def test_a_stream_tells_what_a_sentence_has_so_far_if_it_is_asked(live: Live, engine: EchoEngine) -> None:
    engine.is_holding = True
    asked = request("A dog runs in the green park.", decoding=pb.DecodingOptions(beam_size=1))
    call = live.stub.TranslateStream(pb.TranslateStreamRequest(request=asked, include_partial_text=True))

    messages = aiter(call)
    first = await anext(messages)
    engine.release(0)
    rest = [message async for message in messages]

    assert (first.content_index, first.sentence_index, first.sentence_count) == (0, 0, 1)
    assert asked.contents[0].startswith(first.partial_text)
    assert first.partial_text
    assert not first.HasField("sentence")
    assert [(message.sentence.text, message.partial_text) for message in rest] == [(asked.contents[0], "")]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "include_partial_text: needs a decoding.beam_size of 1, not 4"),
        (
            {"mime_type": "text/html", "decoding": pb.DecodingOptions(beam_size=1)},
            "include_partial_text: must be false with text/html",
        ),
    ],
)
async def test_partial_texts_need_greedy_search_of_plain_texts(
    live: Live, fields: dict[str, Any], message: str
) -> None:
    asked = pb.TranslateStreamRequest(request=request("A dog runs.", **fields), include_partial_text=True)

    assert await told(live.stub.TranslateStream(asked).read()) == (INVALID, message)
