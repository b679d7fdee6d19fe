"""A job over an engine that echoes; no protocol."""

import asyncio
import time
from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.models.model import Model
from server.text.sentences import SourceSentence, SplitText
from server.translation.answer import TextAnswer
from server.translation.job import Job, start_job
from tests.server.echo_engine import EchoEngine


def many_sentences(number: int) -> list[TextAnswer]:
    """A text of so many sentences that are translated, and as many that are copied."""
    pair = (SourceSentence("A dog runs.", " ", (5, 3)), SourceSentence("1", " ", None))
    return [TextAnswer(SplitText("", pair * number))]


async def start(model: Model, answers: list[TextAnswer]) -> Job:
    return await start_job(model, DecodingOptions(), answers, time.monotonic() + 60)


async def test_a_caller_who_leaves_while_sentences_are_submitted_takes_them_along(
    model: Model, engine: EchoEngine
) -> None:
    engine.is_holding, engine.loop = True, asyncio.get_running_loop()
    submitting = asyncio.create_task(start(model, many_sentences(600)))
    await asyncio.sleep(0)  # it starts

    submitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await submitting
    await engine.submitted.wait()
    await asyncio.gather(*map(asyncio.wrap_future, engine.futures), return_exceptions=True)

    assert [future.cancelled() for future in engine.futures] == [True] * 600


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
    assert num_turns >= 3 * 5000 // 500


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
