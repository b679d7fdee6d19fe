"""Submits sentences to an engine, and cancels them when their caller has left."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.flow import Flow
from server.errors import TranslationError
from server.text.source import SourceSentence
from server.translation.answer import TextAnswer
from server.translation.legs import Leg

FEW_SENTENCES = 500  # sentences that the event loop's thread handles without a pause


class Place(NamedTuple):
    """The numbers of a text in its request, and of a sentence in its text."""

    text: int
    sentence: int


class Submitted(NamedTuple):
    """A sentence that was submitted to an engine, or on a second leg one of the pieces that the first leg made of it.

    Attributes:
        source: the sentence as the engine was shown it.
        future: ends with the translation.
        piece: the number of the piece on the second leg; None on the first leg.
        last: the same sentence as it was submitted before, and translated, if this is another attempt.
    """

    place: Place
    source: SourceSentence
    future: Future[Result]
    piece: int | None = None
    last: "Submitted | None" = None

    def without_terms(self) -> "Submitted | None":
        """Returns the last attempt without terms, if this one is a search for them; else None."""
        if self.source.replaced is None:
            return None
        before = self.last
        while before is not None and before.source.replaced is not None:
            before = before.last
        return before


async def submit_first(answers: Sequence[TextAnswer], deadline: float, flow: Flow) -> list[Submitted]:
    """Submits the sentences of a request to the engines of their first legs, and returns them in reading order.

    Many sentences are submitted on another thread. If the caller leaves meanwhile, they are cancelled.

    Args:
        answers: one for each text, with its legs. A text that has failed already is not submitted.
        deadline: instant of `time.monotonic`.

    Raises:
        Overloaded: a queue is at a limit.
        NotServing: an engine has stopped.
    """
    if not are_many(answers):
        return _submit_first(answers, deadline, flow)
    submitting = asyncio.ensure_future(asyncio.to_thread(_submit_first, answers, deadline, flow))
    try:
        return await asyncio.shield(submitting)
    except asyncio.CancelledError:
        submitting.add_done_callback(_cancel_submitted)
        raise


def are_many(answers: Sequence[TextAnswer]) -> bool:
    """Returns whether the texts have so many sentences that to look at each would keep the event loop."""
    return sum(len(answer.split.sentences) for answer in answers) > FEW_SENTENCES


def _submit_first(answers: Sequence[TextAnswer], deadline: float, flow: Flow) -> list[Submitted]:
    of_legs: dict[tuple[int, int], tuple[Leg, DecodingOptions, list[tuple[Place, SourceSentence]]]] = {}
    for place, sentence in sentences_of(answers, are_copied=False):
        leg = answers[place.text].legs[0]
        options = leg.options_for(sentence)
        of_legs.setdefault((id(leg), id(options)), (leg, options, []))[2].append((place, sentence))
    parts: list[Submitted] = []
    try:
        for leg, options, own in of_legs.values():
            sources = [sentence.source_ids or () for _, sentence in own]
            targets = [sentence.given.ids for _, sentence in own if sentence.given is not None]
            futures = _submit(leg, sources, options, deadline - leg.spared_seconds, flow, targets)
            parts += [Submitted(*sentence, future) for sentence, future in zip(own, futures, strict=True)]
    except BaseException:
        for part in parts:
            part.future.cancel()
        raise
    parts.sort(key=lambda part: part.place)
    return parts


def _submit(
    leg: Leg,
    sources: list[tuple[int, ...]],
    options: DecodingOptions,
    deadline: float,
    flow: Flow,
    targets: Sequence[tuple[int, ...]],
) -> list[Future[Result]]:
    """Submits sentences to a leg's engine. If `targets` has ids for each sentence, these are scored."""
    if not targets:
        return leg.model.engine.submit(sources, options, deadline, flow)
    futures: list[Future[Result]] = []
    try:
        for source, target in zip(sources, targets, strict=True):
            given = replace(leg.options, given_targets=(target,))
            futures += leg.model.engine.submit([source], given, deadline, flow)
    except TranslationError:
        for future in futures:
            future.cancel()
        raise
    return futures


def _cancel_submitted(submitting: "asyncio.Future[list[Submitted]]") -> None:
    if not submitting.cancelled() and submitting.exception() is None:
        cancel([part.future for part in submitting.result()])


def cancel(futures: Sequence[Future[Result]], start: int = 0) -> None:
    """Cancels the futures that are not done, from an index on.

    If there are many, most are cancelled in the event loop's next turns.
    """
    end = start + FEW_SENTENCES
    for future in futures[start:end]:
        future.cancel()
    if end < len(futures):
        asyncio.get_running_loop().call_soon(cancel, futures, end)


async def pause_after(index: int, few: int = FEW_SENTENCES) -> None:
    """Lets the event loop do something else after every few sentences, because awaiting alone may not."""
    if index % few == few - 1:
        await asyncio.sleep(0)


def sentences_of(answers: Sequence[TextAnswer], are_copied: bool) -> Iterator[tuple[Place, SourceSentence]]:
    """Yields the sentences that are copied, or else the sentences that are translated, with their places."""
    for index, answer in enumerate(answers):
        for number, sentence in enumerate(answer.split.sentences):
            if (sentence.source_ids is None) == are_copied:
                yield Place(index, number), sentence
