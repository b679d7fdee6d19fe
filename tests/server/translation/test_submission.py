"""Tests of sentences on their way into an engine, and out of it when nobody waits for them any more."""

import asyncio
import time
from concurrent.futures import Future
from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.flow import ANYONE
from server.errors import Overloaded
from server.models.model import Model
from server.translation.legs import Leg
from server.translation.submission import FEW_SENTENCES, cancel, submit
from tests.server.echo_engine import EchoEngine


def leg_of(model: Model, spared_seconds: float = 0.0) -> Leg:
    pair = model.manifest.language_pairs[0]
    return Leg(model=model, pair=pair, options=DecodingOptions(), spared_seconds=spared_seconds)


@pytest.mark.parametrize("number", [1, FEW_SENTENCES + 1])
async def test_sentences_have_the_time_that_their_leg_leaves_them(
    model: Model, engine: EchoEngine, number: int
) -> None:
    deadline = time.monotonic() + 60

    futures = await submit(leg_of(model, 2.0), [(5, 3)] * number, DecodingOptions(), deadline, ANYONE)

    assert engine.deadlines == [deadline - 2.0]
    assert all(future.done() for future in futures)


async def test_a_caller_who_leaves_while_many_are_submitted_takes_them_along(model: Model, engine: EchoEngine) -> None:
    engine.is_holding, engine.loop = True, asyncio.get_running_loop()
    submitting = asyncio.create_task(
        submit(leg_of(model), [(5, 3)] * 600, DecodingOptions(), time.monotonic() + 60, ANYONE)
    )
    await asyncio.sleep(0)  # it starts

    submitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await submitting
    await engine.submitted.wait()
    await asyncio.gather(*map(asyncio.wrap_future, engine.futures), return_exceptions=True)

    assert [future.cancelled() for future in engine.futures] == [True] * 600


async def test_many_are_cancelled_in_several_turns_of_the_event_loop() -> None:
    futures: list[Future[Result]] = [Future() for _ in range(2 * FEW_SENTENCES)]

    cancel(futures)
    at_once = sum(future.cancelled() for future in futures)
    await asyncio.sleep(0)

    assert at_once == FEW_SENTENCES
    assert all(future.cancelled() for future in futures)


async def test_given_targets_are_all_submitted_or_none(
    model: Model, engine: EchoEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.is_holding = True
    submitted = engine.submit

    def refuse_the_third(*arguments: Any) -> list[Future[Result]]:
        if len(engine.futures) == 2:
            raise Overloaded("full", "sentences")
        return submitted(*arguments)

    monkeypatch.setattr(EchoEngine, "submit", lambda _, *arguments: refuse_the_third(*arguments))

    with pytest.raises(Overloaded):
        await submit(leg_of(model), [(5, 3)] * 3, DecodingOptions(), time.monotonic() + 60, ANYONE, [(7, 3)] * 3)

    assert [future.cancelled() for future in engine.futures] == [True, True]
