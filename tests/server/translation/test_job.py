"""A job over an engine that echoes; no protocol."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis, Result, Timings
from server.errors import DeadlineExceeded, EngineFailed, InvalidRequest
from server.models.model import Model
from server.telemetry.metrics import Metrics
from server.telemetry.tracing import CallTrace, current_trace
from server.text.glossary import Glossary
from server.text.masked import KeptPart, Placement, Restored
from server.text.source import SourceSentence, SplitText
from server.text.term_table import Term
from server.translation.answer import TextAnswer, TranslatedSentence, raise_if_all_failed
from server.translation.job import Job, _observe
from server.translation.legs import Leg
from tests.server.echo_engine import EchoEngine
from tests.server.translation.parts import DOG, STARS, start_job


def many_sentences(number: int) -> list[TextAnswer]:
    """A text of so many sentences that are translated, and as many that are copied."""
    return [TextAnswer(SplitText("", (DOG, STARS) * number))]


async def start(model: Model, answers: list[TextAnswer]) -> Job:
    legs = (Leg(model=model, pair=model.manifest.language_pairs[0], options=DecodingOptions()),)
    for answer in answers:
        answer.legs = legs
    return await start_job(answers)


async def test_an_answered_request_leaves_nothing_to_the_garbage_collector(model: Model, engine: EchoEngine) -> None:
    gc.disable()  # which would find what has no other way to be freed
    try:
        engine.is_holding = True
        with await start(model, many_sentences(3)) as job:
            finishing = asyncio.create_task(job.finish())
            await asyncio.sleep(0)  # it watches its sentences, which are not there yet
            for index in range(3):
                engine.release(index)
            await finishing
        left: list[weakref.ref[Any]] = [weakref.ref(job), *map(weakref.ref, engine.futures)]
        del job, finishing
        engine.forget()
        await asyncio.sleep(0)  # the last wake of the event loop was on its way

        assert [each() for each in left] == [None] * 4
    finally:
        gc.enable()


async def test_answering_many_sentences_lets_the_event_loop_turn(model: Model) -> None:
    num_turns = 0

    async def turn() -> None:
        nonlocal num_turns
        while True:
            num_turns += 1
            await asyncio.sleep(0)

    with await start(model, many_sentences(5000)) as job:
        turning = asyncio.create_task(turn())
        num_done = len([done async for done in job.completions()])
        turning.cancel()

    assert num_done == 10_000
    assert num_turns >= 2 * 5000 // 500 + 5000 // 50


async def test_a_caller_who_leaves_is_not_told_of_the_sentences_that_are_cancelled(
    model: Model, engine: EchoEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.is_holding = True
    loop = asyncio.get_running_loop()
    num_calls = 0
    call_soon_threadsafe = loop.call_soon_threadsafe

    def count(*arguments: Any, **more: Any) -> Any:
        nonlocal num_calls
        num_calls += 1
        return call_soon_threadsafe(*arguments, **more)

    with await start(model, many_sentences(1200)) as job:
        monkeypatch.setattr(loop, "call_soon_threadsafe", count)
        completions = job.completions()
        await anext(completions)
    num_cancelled = [sum(future.cancelled() for future in engine.futures)]
    for _ in range(2):
        await asyncio.sleep(0)
        num_cancelled.append(sum(future.cancelled() for future in engine.futures))

    assert num_cancelled == [500, 1000, 1200]
    assert num_calls == 0


async def test_sentences_are_translated_or_copied_into_their_places(
    model: Model, engine: EchoEngine, tokenizer: Tokenizer
) -> None:
    ids = tokenizer.encode("A dog runs.")
    texts = [TextAnswer(SplitText(" ", (STARS, SourceSentence("Ein Hund.", "", ids)))), TextAnswer(SplitText("\n", ()))]

    with await start(model, texts) as job:
        told = [place async for place in job.completions()]

    assert told == [(0, 0), (0, 1)]  # what is copied first
    assert [answer.text(0) for answer in job.answers] == [" *** A dog runs.", "\n"]
    assert engine.options == [job.routes[0][0].options]


async def test_translations_are_told_to_the_metrics_and_the_trace(
    model: Model, engine: EchoEngine, metrics: Metrics
) -> None:
    seconds: list[tuple[float, float, float]] = []

    class Records(CallTrace):
        def add_sentence(self, queue_seconds: float, encode_seconds: float, decode_seconds: float) -> None:
            seconds.append((queue_seconds, encode_seconds, decode_seconds))

    current_trace.set(Records("trace", is_sampled=True))
    with await start(model, many_sentences(3)) as job:
        await job.finish()

    def sample(name: str) -> float | None:
        return metrics.registry.get_sample_value(f"babelserve_{name}", {"model": "echo", "version": "7"})

    assert seconds == [(0.25, 0.5, 1.0)] * 3  # those that are copied have none
    assert sample("time_to_first_sentence_seconds_count") == 1
    assert sample("sentence_source_tokens_sum") == sample("sentence_target_tokens_sum") == 3
    assert sample("length_ratio_sum") == 3


@pytest.mark.parametrize(("written", "counted"), [("THE BIG DOG RUNS.", 1), ("A dog runs.", 0)])
async def test_translations_that_are_garbled_are_counted(
    model: Model, metrics: Metrics, tokenizer: Tokenizer, written: str, counted: int
) -> None:
    source = SourceSentence("Ein Hund rennt.", "", tokenizer.encode(written))

    with await start(model, [TextAnswer(SplitText("", (source,)))]) as job:
        await job.finish()

    labels = {"model": "echo", "version": "7"}
    assert metrics.registry.get_sample_value("babelserve_garbled_sentences_total", labels) == counted


def undelivered(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("babelserve_undelivered_tokens_total", {"model": "echo", "version": "7"})


async def test_what_is_answered_is_delivered(model: Model, metrics: Metrics) -> None:
    with await start(model, many_sentences(3)) as job:
        await job.finish()

    assert undelivered(metrics) == 0


async def test_what_was_translated_for_a_caller_who_left_is_counted(
    model: Model, engine: EchoEngine, metrics: Metrics
) -> None:
    engine.is_holding = True
    job = await start(model, many_sentences(3))

    async def answer() -> None:
        with job:
            await job.finish()

    answering = asyncio.create_task(answer())
    for index in (0, 1):
        engine.release(index)
    for _ in range(20):  # turns, of which it needs a few
        await asyncio.sleep(0)
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering

    assert undelivered(metrics) == 2  # one of each sentence; what is copied has none


async def test_what_a_stream_has_sent_is_delivered(model: Model, metrics: Metrics) -> None:
    async def send(job: Job) -> None:
        with job:
            async for place in job.completions():
                if place.sentence == 4:
                    raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await send(await start(model, many_sentences(3)))

    assert undelivered(metrics) == 0


async def test_a_job_with_nothing_to_translate_asks_nothing_of_the_engine(model: Model, engine: EchoEngine) -> None:
    with await start(model, [TextAnswer(SplitText("", (STARS,)))]) as job:
        await job.finish()

    assert job.answers[0].text(0) == "*** "
    assert engine.deadlines == []


async def test_of_a_text_that_fails_the_first_failure_is_told_and_nothing_more(
    model: Model, engine: EchoEngine
) -> None:
    first, second = EngineFailed("first"), EngineFailed("second")
    engine.fails = lambda source: {5: first, 6: second}.get(source[0])
    failing = SplitText("", tuple(SourceSentence("x", "", ids) for ids in [(5, 3), (6, 3), (7, 3)]))
    whole = SplitText("", (SourceSentence("y", "", (8, 3)),))

    with await start(model, [TextAnswer(failing), TextAnswer(whole)]) as job:
        told = [place async for place in job.completions()]

    assert told == [(0, 0), (1, 0)]
    assert [answer.error for answer in job.answers] == [first, None]


async def test_only_when_a_text_fails_is_it_asked_whether_all_have(
    model: Model, engine: EchoEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("server.translation.job.raise_if_all_failed", lambda answers: asked.append(len(answers)))
    engine.fails = lambda source: EngineFailed("broken") if source[0] == 6 else None
    failing = TextAnswer(SplitText("", (SourceSentence("x", "", (6, 3)),)))

    with await start(model, [failing, *many_sentences(5)]) as job:
        await job.finish()

    assert asked == [2]


async def test_when_every_text_has_failed_the_job_does_and_leaves_the_rest(model: Model, engine: EchoEngine) -> None:
    error = DeadlineExceeded("too late")
    engine.is_holding, engine.fails = True, lambda _: error

    with await start(model, [TextAnswer(SplitText("", (DOG, DOG)))]) as job:
        engine.release(1)
        with pytest.raises(DeadlineExceeded) as caught:
            await job.finish()

    assert caught.value is error
    assert [future.cancelled() for future in engine.futures] == [True, False]


def test_a_request_has_failed_when_no_text_is_without_an_error() -> None:
    one, other = (TextAnswer(SplitText("", (), InvalidRequest("contents", f"{i}"))) for i in range(2))
    whole = TextAnswer(SplitText("", ()))

    for answers in ([whole], [whole, one], [one, whole, other]):
        raise_if_all_failed(answers)
    with pytest.raises(InvalidRequest) as caught:
        raise_if_all_failed([one, other])
    assert caught.value is one.error


def test_each_fact_of_a_translated_sentence_is_counted(model: Model, metrics: Metrics) -> None:
    text = "A dog and a cat run."
    glossary = Glossary([Term(("dog",), ("Hund",)), Term(("cat",), ("Katze",))])
    source = SourceSentence(text, "", model.tokenizer.encode(text), terms=tuple(glossary.find(text)))
    result = Result((Hypothesis((5, 6), -1.0, FinishReason.LENGTH, ()),), Timings(decode_seconds=0.5), None)
    restored = Restored("Ein Hund", (KeptPart("x", Placement.BY_POSITION),), is_garbled=True)
    sentence = TranslatedSentence.decoded(source, result, [restored], model.tokenizer)

    _observe(model, result, restored, sentence)

    labels = {"model": model.manifest.name, "version": model.manifest.version}

    def counted(name: str, **more: str) -> float | None:
        return metrics.registry.get_sample_value(f"babelserve_{name}_total", labels | more)

    assert counted("kept_parts", placement="by_position") == 1
    assert (counted("terms", outcome="applied"), counted("terms", outcome="missed")) == (1, 1)
    assert counted("garbled_sentences") == 1
    assert counted("truncated_sentences") == 1
