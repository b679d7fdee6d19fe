"""Tests of sentences on their way into an engine, and out of it when nobody waits for them any more."""

import asyncio
import time
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.flow import ANYONE
from server.errors import Overloaded
from server.models.model import Model
from server.text.source import Given, SourceSentence, SplitText
from server.translation.answer import TextAnswer
from server.translation.legs import Leg
from server.translation.submission import FEW_SENTENCES, cancel, submit_first
from tests.server.echo_engine import EchoEngine
from tests.server.translation.parts import DOG


def answers_of(model: Model, number: int, sentence: SourceSentence = DOG) -> list[TextAnswer]:
    """A text of so many equal sentences, whose leg leaves two seconds to the next one."""
    leg = Leg(model, model.manifest.language_pairs[0], DecodingOptions(), spared_seconds=2.0)
    return [TextAnswer(SplitText("", (sentence,) * number), (leg,))]


@pytest.mark.parametrize("number", [1, FEW_SENTENCES + 1])
async def test_sentences_have_the_time_that_their_leg_leaves_them(
    model: Model, engine: EchoEngine, number: int
) -> None:
    deadline = time.monotonic() + 60

    parts = await submit_first(answers_of(model, number), deadline, ANYONE)

    assert engine.deadlines == [deadline - 2.0]
    assert [part.place for part in parts] == [(0, index) for index in range(number)]
    assert all(part.future.done() for part in parts)


async def test_a_caller_who_leaves_while_many_are_submitted_takes_them_along(model: Model, engine: EchoEngine) -> None:
    engine.is_holding, engine.loop = True, asyncio.get_running_loop()
    submitting = asyncio.create_task(submit_first(answers_of(model, 600), time.monotonic() + 60, ANYONE))
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
    submitted, given = engine.submit, replace(DOG, given=Given("Ein Hund.", (7, 3)))

    def refuse_the_third(*arguments: Any) -> list[Future[Result]]:
        if len(engine.futures) == 2:
            raise Overloaded("full", "sentences")
        return submitted(*arguments)

    monkeypatch.setattr(EchoEngine, "submit", lambda _, *arguments: refuse_the_third(*arguments))

    with pytest.raises(Overloaded):
        await submit_first(answers_of(model, 3, given), time.monotonic() + 60, ANYONE)

    assert [future.cancelled() for future in engine.futures] == [True, True]
