"""What unfinished sentences have so far, told over an engine that holds its sentences."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.errors import EngineFailed
from server.models.model import Model
from server.text.source import SourceSentence, SplitText
from server.translation.answer import TextAnswer
from server.translation.job import Job
from server.translation.legs import Leg
from server.translation.partial import Partial, completions_and_partials
from server.translation.submission import Place
from tests.server.echo_engine import EchoEngine
from tests.server.translation.parts import start_job

_TEXT = "A dog runs in the green park."
_PATIENCE_SECONDS = 100.0


async def start(model: Model, tokenizer: Tokenizer, engine: EchoEngine, num_legs: int = 1) -> Job:
    """A job of a text of two equal sentences, which the engine holds."""
    engine.is_holding = True
    leg = Leg(model=model, pair=model.manifest.language_pairs[0], options=DecodingOptions(beam_size=1))
    sentence = SourceSentence(_TEXT, " ", tokenizer.encode(_TEXT))
    answer = TextAnswer(SplitText("", (sentence, sentence)), (leg,) * num_legs)
    return await start_job([answer], _PATIENCE_SECONDS)


async def next_of(told: "AsyncIterator[Place | Partial]") -> "Place | Partial":
    return await asyncio.wait_for(anext(told), _PATIENCE_SECONDS)


async def look_again(engine: EchoEngine) -> None:
    """Waits until the engine is asked twice more."""
    for _ in range(2):
        engine.looked.clear()
        await engine.looked.wait()


async def test_a_sentence_tells_what_it_has_until_it_is_whole(
    model: Model, tokenizer: Tokenizer, engine: EchoEngine
) -> None:
    with await start(model, tokenizer, engine) as job:
        told = completions_and_partials(job)
        first, second = await next_of(told), await next_of(told)
        engine.release(0)
        whole = await next_of(told)
        engine.translates = lambda source: source[:6] + source  # it goes on
        third = await next_of(told)
        engine.release(1)
        rest = [each async for each in told]

    assert isinstance(first, Partial)
    assert _TEXT.startswith(first.text)
    assert 0 < len(first.text) < len(_TEXT)
    assert second == Partial(Place(0, 1), first.text)
    assert whole == Place(0, 0)
    assert isinstance(third, Partial)
    assert (third.place, third.text != first.text) == (Place(0, 1), True)
    assert rest == [Place(0, 1)]


async def test_what_is_told_already_is_not_told_again(model: Model, tokenizer: Tokenizer, engine: EchoEngine) -> None:
    with await start(model, tokenizer, engine) as job:
        told = completions_and_partials(job)
        partials = [await next_of(told), await next_of(told)]
        waiting = asyncio.ensure_future(next_of(told))
        await look_again(engine)
        is_silent = not waiting.done()
        engine.release(0)

        assert await waiting == Place(0, 0)
    assert is_silent
    assert all(isinstance(each, Partial) for each in partials)


async def test_a_text_over_two_legs_tells_nothing(model: Model, tokenizer: Tokenizer, engine: EchoEngine) -> None:
    with await start(model, tokenizer, engine, num_legs=2) as job:
        told = completions_and_partials(job)
        waiting = asyncio.ensure_future(next_of(told))
        engine.is_holding = False  # on the second leg
        engine.release(0)
        engine.release(1)

        assert await waiting == Place(0, 0)
        assert [each async for each in told] == [Place(0, 1)]
    assert not engine.looked.is_set()


@pytest.mark.parametrize("num_released", [0, 2])  # so many of its sentences are on the second leg
async def test_a_text_over_two_legs_tells_nothing_beside_one_of_the_same_engine(
    model: Model, tokenizer: Tokenizer, engine: EchoEngine, num_released: int
) -> None:
    engine.is_holding = True
    leg = Leg(model=model, pair=model.manifest.language_pairs[0], options=DecodingOptions(beam_size=1))
    sentence = SourceSentence(_TEXT, " ", tokenizer.encode(_TEXT))
    over_two = TextAnswer(SplitText("", (sentence, sentence)), (leg, leg))
    direct = TextAnswer(SplitText("", (sentence,)), (leg,))
    with await start_job([over_two, direct], _PATIENCE_SECONDS) as job:
        told = completions_and_partials(job)
        first = await next_of(told)
        for index in range(num_released):
            engine.release(index)
        engine.translates = lambda source: source[:6] + source  # it goes on
        second = await next_of(told)
        looked_through = [part.place for part in (job.growing or {}).values()]

    assert looked_through == [Place(1, 0)]
    assert isinstance(first, Partial)
    assert isinstance(second, Partial)
    assert {first.place, second.place} == {Place(1, 0)}


async def test_an_error_of_the_job_is_raised(model: Model, tokenizer: Tokenizer, engine: EchoEngine) -> None:
    error = EngineFailed("broken")
    engine.fails = lambda _: error
    with await start(model, tokenizer, engine) as job:
        told = completions_and_partials(job)
        await next_of(told)
        engine.release(0)

        with pytest.raises(EngineFailed, match="broken"):
            [each async for each in told]


async def test_leaving_it_leaves_the_completions(model: Model, tokenizer: Tokenizer, engine: EchoEngine) -> None:
    with await start(model, tokenizer, engine) as job:
        told = completions_and_partials(job)
        await next_of(told)
        await told.aclose()  # type: ignore[attr-defined]  # it is a generator

    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert others == set()
