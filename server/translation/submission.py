"""How sentences enter an engine, and leave it when nobody waits for them any more."""

import asyncio
import functools
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from server.decoding.result import Result
from server.engine.flow import Flow
from server.text.sentences import SourceSentence
from server.translation.legs import Leg

FEW_SENTENCES = 500  # the event loop is not kept waiting for more than that at once


class Place(NamedTuple):
    """Where a sentence stands in the request."""

    text: int
    sentence: int


class Submitted(NamedTuple):
    """What an engine has of a sentence: the sentence, or on its second leg a piece of what the first made of it.

    Attributes:
        place: of the sentence.
        source: as the engine was shown it.
        future: of its translation.
        piece: its number on the second leg; None on the first.
    """

    place: Place
    source: SourceSentence
    future: Future[Result]
    piece: int | None = None


async def submit(leg: Leg, sources: list[tuple[int, ...]], deadline: float, flow: Flow) -> list[Future[Result]]:
    """Submits, many on another thread; if the caller leaves meanwhile, what has been submitted is cancelled."""
    call = functools.partial(leg.model.engine.submit, sources, leg.options, deadline - leg.spared_seconds, flow)
    if len(sources) <= FEW_SENTENCES:
        return call()
    submitting = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(submitting)
    except asyncio.CancelledError:
        submitting.add_done_callback(_cancel_submitted)
        raise


def _cancel_submitted(submitting: "asyncio.Future[list[Future[Result]]]") -> None:
    if not submitting.cancelled() and submitting.exception() is None:
        cancel(submitting.result(), 0)


def cancel(futures: Sequence[Future[Result]], start: int) -> None:
    """Cancels what is not done; of many sentences, most of them in the event loop's next turns."""
    end = start + FEW_SENTENCES
    for future in futures[start:end]:
        future.cancel()
    if end < len(futures):
        asyncio.get_running_loop().call_soon(cancel, futures, end)


async def pause_after(index: int) -> None:
    """Lets the event loop do something else after every few sentences: awaiting alone need not."""
    if index % FEW_SENTENCES == FEW_SENTENCES - 1:
        await asyncio.sleep(0)
