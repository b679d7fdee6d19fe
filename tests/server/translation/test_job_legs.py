"""A job whose texts go over two models, or each to its own."""

import asyncio
import dataclasses

import pytest

from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.engine.flow import ANYONE
from server.errors import EngineFailed, Overloaded
from server.models.model import Model
from server.text.source import SourceSentence, SplitText
from server.translation.answer import TextAnswer
from server.translation.job import Job
from server.translation.legs import Leg
from tests.server.echo_engine import EchoEngine
from tests.server.translation.parts import STARS, start_job

SECONDS = 100.0  # far above what this needs
FIRST_IDS, SECOND_IDS, THIRD_IDS = (5, 3), (6, 3), (7, 3)


async def start_relay(model: Model, engines: tuple[EchoEngine, EchoEngine], *texts: SplitText) -> Job:
    """Texts that two models pass on, each an echo."""
    pair, options = model.manifest.language_pairs[0], DecodingOptions()
    legs = tuple(
        Leg(model=dataclasses.replace(model, engine=engine), pair=pair, options=options, spared_seconds=spared)
        for engine, spared in zip(engines, (10.0, 0.0), strict=True)
    )
    return await start_job([TextAnswer(text, legs) for text in texts])


def text_of(tokenizer: Tokenizer, *sentences: str) -> SplitText:
    return SplitText("", tuple(SourceSentence(each, " ", tokenizer.encode(each)) for each in sentences))


async def test_a_sentence_is_passed_on_as_soon_as_it_is_there(model: Model, tokenizer: Tokenizer) -> None:
    engines = EchoEngine(is_holding=True, score=-1.0), EchoEngine(is_holding=True, score=-0.5)
    text = text_of(tokenizer, "One dog.", "Two dogs.")
    told = []
    with await start_relay(model, engines, text, SplitText("", (STARS,))) as job:
        completions = job.completions()
        told.append(await anext(completions))
        waiting = asyncio.ensure_future(anext(completions))
        engines[0].release(1)
        await engines[1].submitted.wait()
        engines[1].release(0)
        told.append(await waiting)
        engines[1].submitted.clear()
        engines[0].release(0)
        waiting = asyncio.ensure_future(anext(completions))
        await engines[1].submitted.wait()
        engines[1].release(1)
        told.append(await waiting)
        with pytest.raises(StopAsyncIteration):
            await anext(completions)

    assert told == [(1, 0), (0, 1), (0, 0)]
    assert [answer.text(0) for answer in job.answers] == ["One dog. Two dogs. ", "*** "]
    assert job.answers[0].score(0) == -1.5
    first, second = engines[0].deadlines[0], engines[1].deadlines[0]
    assert first is not None
    assert second == pytest.approx(first + 10.0)
    assert engines[0].flows + engines[1].flows == [ANYONE] * 3


async def test_sentences_of_a_whole_answer_are_passed_on_as_soon_as_well(model: Model, tokenizer: Tokenizer) -> None:
    engines = EchoEngine(is_holding=True), EchoEngine(is_holding=True)
    with await start_relay(model, engines, text_of(tokenizer, "One dog.", "Two dogs.", "Three dogs.")) as job:
        finishing = asyncio.ensure_future(job.finish())
        async with asyncio.timeout(SECONDS):
            for index in range(3):  # while those after it have not come from the first engine
                engines[0].release(index)
                await engines[1].submitted.wait()
                engines[1].submitted.clear()
                engines[1].release(index)
                for _ in range(10):  # turns, in which the job takes this one and waits for the next
                    await asyncio.sleep(0)
            await finishing

    assert job.answers[0].text(0) == "One dog. Two dogs. Three dogs. "


async def test_a_text_fails_on_either_leg_and_takes_its_other_sentences_along(
    model: Model, tokenizer: Tokenizer
) -> None:
    refusal = Overloaded("full", "tokens")
    failing = tokenizer.encode("Two dogs.")
    for engines, error in (
        ((EchoEngine(), EchoEngine(refuses=refusal)), refusal),
        ((EchoEngine(), EchoEngine(fails=lambda ids: EngineFailed("failed") if ids == failing else None)), None),
        ((EchoEngine(fails=lambda ids: EngineFailed("failed") if ids == failing else None), EchoEngine()), None),
    ):
        texts = text_of(tokenizer, "Two dogs.", "One dog."), SplitText("", (STARS,))
        with await start_relay(model, engines, *texts) as job:
            await job.finish()

        assert job.answers[0].error is error or isinstance(job.answers[0].error, EngineFailed)
        assert job.answers[1].text(0) == "*** "


async def test_leaving_a_job_cancels_both_legs(model: Model, tokenizer: Tokenizer) -> None:
    engines = EchoEngine(is_holding=True), EchoEngine(is_holding=True)
    with await start_relay(model, engines, text_of(tokenizer, "One dog.", "Two dogs.")) as job:
        waiting = asyncio.ensure_future(anext(job.completions()))
        engines[0].release(0)
        await engines[1].submitted.wait()
        waiting.cancel()

    assert [future.cancelled() for engine in engines for future in engine.futures] == [False, True, True]


async def test_texts_of_different_models_go_to_each_its_own(model: Model) -> None:
    engines = EchoEngine(), EchoEngine()
    pair, options = model.manifest.language_pairs[0], DecodingOptions()
    answers = [
        TextAnswer(SplitText("", (SourceSentence("x", "", ids),)), (leg,))
        for ids, leg in zip(
            (FIRST_IDS, SECOND_IDS),
            [Leg(model=dataclasses.replace(model, engine=each), pair=pair, options=options) for each in engines],
            strict=True,
        )
    ]
    with await start_job(answers) as job:
        told = [place async for place in job.completions()]

    assert sorted(told) == [(0, 0), (1, 0)]
    assert [len(engine.futures) for engine in engines] == [1, 1]
    assert [legs[0].model.engine for legs in job.routes] == [*engines]


async def test_when_one_model_has_no_room_what_others_have_taken_is_cancelled(model: Model) -> None:
    engines = EchoEngine(is_holding=True), EchoEngine(refuses=Overloaded("full", "tokens"))
    pair, options = model.manifest.language_pairs[0], DecodingOptions()
    answers = [
        TextAnswer(
            SplitText("", (SourceSentence("x", "", THIRD_IDS),)),
            (Leg(model=dataclasses.replace(model, engine=each), pair=pair, options=options),),
        )
        for each in engines
    ]
    with pytest.raises(Overloaded):
        await start_job(answers)

    assert [future.cancelled() for future in engines[0].futures] == [True]
