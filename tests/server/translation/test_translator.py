"""The translator without any protocol: what a second front would do."""

import asyncio
import dataclasses
import gc
import threading
import time
import weakref
from typing import Any

import pytest

from server.bundle.languages import Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import TOKENIZER_FILE, SearchDefaults
from server.bundle.tokenizer import Tokenizer
from server.errors import Code, DeadlineExceeded, InvalidRequest, ModelNotFound, NotServing, Overloaded
from server.models.model import Model
from server.telemetry.metrics import Metrics
from server.text.masking import Masker
from server.text.splitter import MAX_TEXT_BYTES
from server.translation.legs import Leg
from server.translation.memory import MemoryBudget
from server.translation.request import TextOptions
from server.translation.translator import Translator, _count
from tests.server.echo_engine import EchoEngine, catalogue_of
from tests.server.translation.parts import request


async def test_texts_go_in_and_their_translations_come_out(translator: Translator) -> None:
    with await translator.accept(request("  One dog runs. Two dogs.\n", "***", num_hypotheses=2)) as job:
        await job.finish()

    assert [answer.text(0) for answer in job.answers] == ["  One dog runs. Two dogs.\n", "***"]
    assert job.answers[0].text(1) == "  One dog runs Two dogs\n"
    assert [answer.error for answer in job.answers] == [None, None]
    ((leg,),) = job.routes
    assert (leg.model.manifest.name, leg.options.beam_size, job.num_hypotheses) == ("echo", 4, 2)


async def test_sentences_are_told_as_they_complete(translator: Translator, engine: EchoEngine) -> None:
    engine.is_holding = True
    with await translator.accept(request("One dog. Two dogs.", "*** \nThree dogs.")) as job:
        completions = job.completions()
        told = [await anext(completions)]
        for index in (2, 0, 1):
            engine.release(index)
            told.append(await anext(completions))

    assert told == [(1, 0), (1, 1), (0, 0), (0, 1)]


@pytest.mark.parametrize(("number", "is_away"), [(2, False), (600, True)])
async def test_sentences_are_looked_at_away_from_the_event_loop_if_they_are_many(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, number: int, is_away: bool
) -> None:
    here, looks = threading.get_ident(), {}

    def watch(kind: type[Any], name: str) -> None:
        call = getattr(kind, name)

        def watched(*arguments: Any) -> Any:
            looks[name] = threading.get_ident() != here
            return call(*arguments)

        monkeypatch.setattr(kind, name, watched)

    watch(Masker, "unknown_script")
    watch(EchoEngine, "predict_seconds")
    watch(Leg, "options_for")
    watch(EchoEngine, "submit")
    asked = dataclasses.replace(request("A dog runs. " * number, "***"), text=TextOptions(refuse_unknown_scripts=True))

    with await translator.accept(asked) as job:
        await job.finish()

    assert looks == dict.fromkeys(("unknown_script", "predict_seconds", "options_for", "submit"), is_away)


async def test_a_text_that_breaks_a_limit_fails_alone(translator: Translator) -> None:
    with await translator.accept(request("One dog.", "x " * MAX_TEXT_BYTES)) as job:
        await job.finish()

    assert job.answers[0].text(0) == "One dog."
    assert isinstance(job.answers[1].error, InvalidRequest)


async def test_a_text_is_translated_behind_what_its_translation_begins_with(
    translator: Translator, engine: EchoEngine, tokenizer: Tokenizer
) -> None:
    asked = dataclasses.replace(request("One dog.", "Two dogs."), target_prefixes=["", "two  dogs"])

    with await translator.accept(asked) as job:
        await job.finish()

    ids = tokenizer.encode("two  dogs")[:-1]
    assert [options.target_prefix for options in engine.options] == [(), ids]
    assert [answer.text(0) for answer in job.answers] == ["One dog.", "Two dogs."], "an echo follows no prefix"


async def test_a_prefix_that_is_refused_is_refused_before_anything_is_done(
    translator: Translator, engine: EchoEngine
) -> None:
    with pytest.raises(InvalidRequest, match="target_prefixes: must be 1, or as many as the texts, 3, not 2"):
        await translator.accept(dataclasses.replace(request("a", "b", "c"), target_prefixes=["A", "B"]))
    with pytest.raises(InvalidRequest, match=r"target_prefixes\[0\]: must be at most"):
        await translator.accept(dataclasses.replace(request("a dog"), target_prefixes=["dog " * 200]))

    assert engine.futures == []


async def test_leaving_a_job_cancels_what_is_not_done(translator: Translator, engine: EchoEngine) -> None:
    engine.is_holding = True
    with await translator.accept(request("One dog. Two dogs.")):
        engine.release(0)

    assert [future.cancelled() for future in engine.futures] == [False, True]


async def test_the_earlier_deadline_counts(translator: Translator, engine: EchoEngine) -> None:
    before = time.monotonic()
    for seconds in (30.0, 3000.0, float("inf")):
        with await translator.accept(request("One dog.", seconds=seconds)):
            pass

    given = [deadline - before for deadline in engine.deadlines]
    assert given == pytest.approx([30.0, 60.0, 60.0], abs=10.0), "these machines are busy"


async def test_what_is_wrong_is_raised_before_anything_is_done(translator: Translator, engine: EchoEngine) -> None:
    for wrong, error in (
        (request(), InvalidRequest),
        (request("One dog.", model="other"), ModelNotFound),
        (request("One dog.", beam_size=99), InvalidRequest),
        (request("x " * MAX_TEXT_BYTES), InvalidRequest),
        (request("One dog.", seconds=-1.0), DeadlineExceeded),
        (dataclasses.replace(request("One dog."), text=TextOptions(keep=["x" * 101])), InvalidRequest),
    ):
        with pytest.raises(error):
            await translator.accept(wrong)

    assert engine.futures == []


async def test_requests_of_a_version_are_counted_by_how_they_end(
    translator: Translator, model: Model, engine: EchoEngine, metrics: Metrics
) -> None:
    engine.is_holding = True
    with await translator.accept(request("One dog.")) as job:
        engine.release(0)
        await job.finish()
    with pytest.raises(RuntimeError), await translator.accept(request("One dog.")):
        raise RuntimeError
    for deadline in (float("inf"), 0.0):
        left = dataclasses.replace(request("One dog."), deadline=deadline)
        _count(model, left, asyncio.CancelledError, asyncio.CancelledError(), None)
    engine.refuses = Overloaded("full", "tokens")
    with pytest.raises(Overloaded):
        await translator.accept(request("One dog."))

    def counted(code: Code) -> float | None:
        labels = {"model": "echo", "version": "7", "code": code.name}
        return metrics.registry.get_sample_value("babelserve_model_requests_total", labels)

    counts = {code.name: count for code in Code if (count := counted(code))}
    expected = {"OK": 1, "INTERNAL": 1, "CANCELLED": 1, "DEADLINE_EXCEEDED": 1, "RESOURCE_EXHAUSTED": 1}
    assert counts == expected
    labels = {"model": "echo", "version": "7"}
    value = metrics.registry.get_sample_value("babelserve_model_request_duration_seconds_count", labels)
    assert value == expected["OK"]


async def test_texts_of_bulk_calls_are_not_counted_as_requests_of_a_version(
    translator: Translator, metrics: Metrics
) -> None:
    with await translator.accept(dataclasses.replace(request("One dog."), is_bulk=True)) as job:
        await job.finish()

    labels = {"model": "echo", "version": "7", "code": "OK"}
    assert not metrics.registry.get_sample_value("babelserve_model_requests_total", labels)


async def test_without_a_model_every_request_is_refused(translator: Translator, model: Model) -> None:
    translator.catalogue = catalogue_of()

    with pytest.raises(NotServing):
        await translator.accept(request("One dog."))


async def test_a_sentence_carries_the_ids_of_its_languages(
    translator: Translator, model: Model, engine: EchoEngine, tokenizer_model: bytes
) -> None:
    languages = Languages(
        source={"en": SourceLanguage(prefix=(400,)), "fr": SourceLanguage(prefix=(401,))},
        target={"de": TargetLanguage(source_prefix=(402,), prefix=(403, 404)), "it": TargetLanguage(prefix=(405,))},
    )
    manifest = dataclasses.replace(model.manifest, language_pairs=(), languages=languages)
    tokenizer = Tokenizer(manifest, {TOKENIZER_FILE: tokenizer_model}.__getitem__)
    translator.catalogue = catalogue_of(dataclasses.replace(model, manifest=manifest, tokenizer=tokenizer))
    sources: list[tuple[int, ...]] = []
    engine.fails = sources.append  # no failure, but told of each sentence

    jobs = []
    for source, target in (("fr_FR", "deu"), ("en", "it")):
        asked = dataclasses.replace(request("A dog runs."), source_language_code=source, target_language_code=target)
        with await translator.accept(asked) as job:
            await job.finish()
            jobs.append(job)

    text = tokenizer.encode("A dog runs.")
    assert sources == [(402, 401, *text), (400, *text)]
    assert [options.forced_prefix for options in engine.options] == [(403, 404), (405,)]
    assert [job.answers[0].text(0) for job in jobs] == ["A dog runs."] * 2  # an echo, whose prefix shows no text
    assert [job.answers[0].num_source_tokens for job in jobs] == [len(text) - 1] * 2
    assert [(job.routes[0][0].pair.source, job.routes[0][0].pair.target) for job in jobs] == [
        ("fr", "de"),
        ("en", "it"),
    ]


async def test_a_long_sentence_is_cut_so_that_its_prefix_fits(translator: Translator, model: Model) -> None:
    pair = dataclasses.replace(model.manifest.language_pairs[0], source_prefix=(50, 51, 52))
    translator.catalogue = catalogue_of(
        dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, language_pairs=(pair,)))
    )

    with await translator.accept(request("dog " * 300)) as job:
        sentences = job.answers[0].split.sentences

    longest = max(len(sentence.source_ids or ()) for sentence in sentences)
    assert len(sentences) > 4
    assert 40 < longest <= 64
    assert all(sentence.num_tokens == len(sentence.source_ids or ()) - 4 for sentence in sentences)


async def test_what_a_request_leaves_open_is_the_servers_choice_then_the_models(
    model: Model, metrics: Metrics, engine: EchoEngine
) -> None:
    search = SearchDefaults(beam_size=6, length_penalty=0.5, forced_eos=True)
    own = dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, search=search))
    for beam_size, one in ((0, own), (2, own), (0, model), (16, model)):
        translator = Translator(
            catalogue_of(one),
            beam_size=beam_size,
            max_request_seconds=60.0,
            memory=MemoryBudget(1 << 30),
            metrics=metrics.access,
        )
        with await translator.accept(request("One dog.")):
            pass
        with await translator.accept(request("One dog.", beam_size=1, length_penalty=2.0)):
            pass

    found = [(options.beam_size, options.length_penalty) for options in engine.options]
    assert found == [(6, 0.5), (1, 2.0), (2, 0.5), (1, 2.0), (4, 1.0), (1, 2.0), (8, 1.0), (1, 2.0)]
    translator.catalogue = catalogue_of(own)
    with pytest.raises(InvalidRequest, match=r"max_output_tokens: must be from 2 to 100, not 1"):
        await translator.accept(request("One dog.", max_output_tokens=1))


async def test_a_job_that_is_left_is_in_no_cycle_which_would_keep_its_model(translator: Translator) -> None:
    gc.disable()
    try:
        with await translator.accept(request("One dog. Two dogs.")) as job:
            await job.finish()
        left = weakref.ref(job)
        del job
        await asyncio.sleep(0)  # the last wake of the event loop was on its way

        assert left() is None
    finally:
        gc.enable()
