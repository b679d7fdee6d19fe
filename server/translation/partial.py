"""Tells what the translations of running sentences have so far, to a caller that asks for it.

It asks the engine now and then, so a step knows nothing of it, and other callers pay nothing.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from server.translation.job import Job
from server.translation.restoring import restore_beginning
from server.translation.submission import Place

# Between two looks. Half as long, and a page gets twice as many texts, which nobody reads faster; twice as long, and
# most sentences of small models are over before the first look.
_INTERVAL_SECONDS = 0.1
_MOST_SENTENCES = 64  # of a look: half as many, and a lane runs others unseen; twice as many, and a look takes 2 ms


class Partial(NamedTuple):
    """The beginning of a sentence's translation, which the next one or the whole translation replaces."""

    place: Place
    text: str


async def completions_and_partials(job: Job) -> AsyncIterator[Place | Partial]:
    """Yields what `Job.completions` does, and ten times a second the partial texts that have changed."""
    job.growing = {}
    told: dict[Place, str] = {}
    completions = job.completions()
    waiting = asyncio.ensure_future(anext(completions))
    due = time.monotonic() + _INTERVAL_SECONDS
    try:
        while True:
            await asyncio.wait([waiting], timeout=max(0.0, due - time.monotonic()))
            if waiting.done():
                try:
                    place = waiting.result()
                except StopAsyncIteration:
                    return
                told.pop(place, None)
                yield place
                waiting = asyncio.ensure_future(anext(completions))
            if time.monotonic() >= due:
                for partial in _partials(job, told):
                    yield partial
                due = time.monotonic() + _INTERVAL_SECONDS
    finally:
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
            await waiting


def _partials(job: Job, told: dict[Place, str]) -> list[Partial]:
    """Returns the partial texts that have changed since they were last sent, and notes them; over a pivot none."""
    partials = []
    growing = dict(itertools.islice((job.growing or {}).items(), _MOST_SENTENCES))
    engines = {id(legs[0].model.engine): legs[0].model.engine for legs in job.routes if len(legs) == 1}
    found = [pair for engine in engines.values() for pair in engine.ids_so_far(growing).items()]
    for part, ids in ((growing[future], ids) for future, ids in found):
        text = restore_beginning(part.source, ids, job.answers[part.place.text].legs[0].model.tokenizer)
        if text and text != told.get(part.place):
            told[part.place] = text
            partials.append(Partial(part.place, text))
    return partials
