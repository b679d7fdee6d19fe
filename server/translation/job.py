"""The sentences of one request while the engines translate them.

A unary call and a streamed call are both a job, so their results are the same.
"""

import asyncio
import contextlib
import functools
import itertools
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import Self

from server.bundle.tokenizer import Tokenizer
from server.decoding.result import FinishReason, Result
from server.engine.flow import Flow
from server.errors import TranslationError
from server.models.model import Model
from server.telemetry.tracing import current_trace
from server.text.masked import Restored
from server.text.source import SourceSentence
from server.translation.answer import TextAnswer, TranslatedSentence, raise_if_all_failed
from server.translation.legs import Leg
from server.translation.mailbox import Doorbell, Mailbox
from server.translation.relay import Relay
from server.translation.restoring import restore
from server.translation.submission import Place, Submitted, cancel, pause_after, sentences_of

# Finished sentences that are restored without a pause: others wait 2 ms for them, or 4 if they have terms. Half, and
# nobody is served noticeably sooner; twice, and others wait longer than most steps take.
_FEW_DONE = 50
_SENTENCES_PER_WAKE = 8  # if neither the caller nor a second engine waits for the first ones


class Job:
    """A running request. `completions` fills its answers. Leaving its `with` block cancels the sentences that are left.

    Args:
        answers: one for each text, with its legs.
        parts: the sentences of their first legs, from `submit_first`.
        deadline: instant of `time.monotonic`.
        arrived: instant of the request's arrival, of the same clock.
        doorbell: wakes the event loop.

    Attributes:
        answers: as given.
        routes: the legs of each route that a text has, every route once.
        num_hypotheses: as the request asked.
        growing: the unfinished sentences of texts with one leg, by their futures; None unless a dict is put there
            before `completions`.
        held: gives back what the job has taken, when the job is left.
    """

    def __init__(
        self,
        answers: Sequence[TextAnswer],
        parts: Sequence[Submitted],
        deadline: float,
        arrived: float,
        flow: Flow,
        doorbell: Doorbell,
    ) -> None:
        self.answers = answers
        self.routes = list({id(answer.legs): answer.legs for answer in answers if answer.legs}.values())
        self.num_hypotheses = self.routes[0][-1].options.num_hypotheses
        self.growing: dict[Future[Result], Submitted] | None = None
        self.held = contextlib.ExitStack()
        self._parts = parts  # in the order of their places
        self._second: dict[int, list[Future[Result]]] = {}  # of second legs and second searches, by text
        self._relays: dict[Place, Relay] = {}
        self._deadline = deadline
        self._arrived = arrived
        self._flow = flow
        self._completed: Mailbox[Submitted] = Mailbox(doorbell)
        self._num_running = 0
        self._has_first = False
        self._is_whole = False  # a unary call: the caller gets everything at once
        self._is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_left = True
        if error is not None and self._is_whole:
            for answer in self.answers:
                if answer.legs:
                    answer.legs[-1].model.metrics.undelivered_tokens_total.inc(answer.num_target_tokens)
        # The callbacks of the futures refer to the job. The cycle would keep its model in memory until it is collected.
        futures = [part.future for part in self._parts]
        futures += itertools.chain.from_iterable(self._second.values())
        self._parts, self._second = [], {}
        cancel(futures)
        self.held.__exit__(kind, error, trace)

    async def finish(self) -> None:
        """Waits until every text has its answer. Raises the first text's error if all texts fail."""
        self._is_whole = True
        async for _ in self.completions():
            pass

    async def completions(self) -> AsyncIterator[Place]:
        """Adds each sentence to its text's answer when it completes, and yields its place. Copied sentences come first.

        It completes with the texts in its tags. If a text fails, the place of its first failure is yielded and no other
        place of the text. It can be used once. Raises the first text's error if all texts fail.
        """
        for count, (place, sentence) in enumerate(sentences_of(self.answers, are_copied=True)):
            await pause_after(count)
            answer = self.answers[place.text]
            answer.sentences[place.sentence] = TranslatedSentence.copied(sentence)
            if (told := answer.note(place.sentence)) is not None:
                yield Place(place.text, told)
        async for part in self._done():
            answer = self.answers[part.place.text]
            if answer.error is None and self._add(answer, part):
                if answer.error is None:
                    self._note_first(answer)
                else:
                    raise_if_all_failed(self.answers)
                if (told := answer.note(part.place.sentence)) is not None:
                    yield Place(part.place.text, told)

    async def _done(self) -> AsyncIterator[Submitted]:
        """Yields every submitted sentence when it is done, those of second legs and second searches included."""
        for index, part in enumerate(self._parts):
            self._watch(part)
            await pause_after(index)
        for count in itertools.takewhile(lambda _: self._num_running, itertools.count()):
            await pause_after(count, _FEW_DONE)
            can_wait = self._is_whole and self._has_first and max(map(len, self.routes)) == 1
            part = await self._completed.get(min(_SENTENCES_PER_WAKE, self._num_running) if can_wait else 1)
            self._num_running -= 1
            if self.growing is not None:
                self.growing.pop(part.future, None)
            yield part

    def _watch(self, part: Submitted) -> None:
        self._num_running += 1
        if self.growing is not None and len(self.answers[part.place.text].legs) == 1:
            self.growing[part.future] = part
        tell = functools.partial(self._tell, part.place, part.source, part.piece, part.last, asyncio.get_running_loop())
        part.future.add_done_callback(tell)  # it does not refer to the future: a cycle would wait for the collector

    def _tell(
        self,
        place: Place,
        source: SourceSentence,
        piece: int | None,
        last: Submitted | None,
        loop: asyncio.AbstractEventLoop,
        future: Future[Result],
    ) -> None:
        """Puts a finished sentence into the mailbox. It runs on the engine's thread."""
        if not self._is_left:
            self._completed.put(Submitted(place, source, future, piece, last), loop)

    def _add(self, answer: TextAnswer, part: Submitted) -> bool:
        """Adds a finished sentence to its text. Returns whether there is a sentence, or a text's failure, to tell."""
        place, is_second = part.place, part.piece is not None
        try:
            sentence = self._translated(answer.legs[int(is_second)], part)
            if sentence is None:  # it was submitted again
                return False
            if part.piece is not None:
                relay = self._relays[place]
                relay.middle.sentences[part.piece] = sentence
                return self._end(answer, place, relay)
            if len(answer.legs) > 1:
                return self._pass_on(answer, place, sentence)
            answer.sentences[place.sentence] = sentence
        except TranslationError as error:
            self._fail(answer, place.text, error)
        return True

    def _note_first(self, answer: TextAnswer) -> None:
        if not self._has_first:
            self._has_first = True
            metrics = answer.legs[-1].model.metrics.translations
            metrics.time_to_first_sentence_seconds.observe(time.monotonic() - self._arrived)

    def _fail(self, answer: TextAnswer, text: int, error: TranslationError) -> None:
        """Ends a text with an error, and cancels its other sentences, because nobody needs them any more."""
        answer.error = error
        bounds = Place(text, 0), Place(text + 1, 0)
        first, end = (bisect_left(self._parts, bound, key=lambda part: part.place) for bound in bounds)
        cancel([part.future for part in self._parts[first:end]])
        cancel(self._second.get(text, []))

    def _pass_on(self, answer: TextAnswer, place: Place, sentence: TranslatedSentence) -> bool:
        """Submits a sentence to its second leg. Returns whether it is complete at once: all of it was copied."""
        leg = answer.legs[1]
        relay = self._relays[place] = Relay.begin(sentence, leg)
        pieces = relay.middle.split.sentences
        waiting = [index for index in range(len(pieces)) if index not in relay.middle.sentences]
        if waiting:
            engine = leg.model.engine
            engine.observe_text(len(sentence.candidates[0].text), sum(piece.num_tokens for piece in pieces))
            sources = [pieces[index].source_ids or () for index in waiting]
            futures = engine.submit(sources, leg.options, self._deadline, self._flow)
            self._second.setdefault(place.text, []).extend(futures)
            for index, future in zip(waiting, futures, strict=True):
                self._watch(Submitted(place, pieces[index], future, index))
        return self._end(answer, place, relay)

    def _end(self, answer: TextAnswer, place: Place, relay: Relay) -> bool:
        """Adds a sentence to its text if its second leg has ended. Returns whether it has."""
        if not relay.is_complete:
            return False
        answer.sentences[place.sentence] = relay.end(self.num_hypotheses)
        del self._relays[place]
        return True

    def _translated(self, leg: Leg, part: Submitted) -> TranslatedSentence | None:
        """Returns what a leg has made of a sentence or piece; None if a part is lost and it is submitted again.

        The translation before it counts if another attempt fails, unless the request itself is late.
        """
        tokenizer, is_over = leg.model.tokenizer, bool(part.source.choices)  # nothing is asked after a choice
        if part.last and isinstance(part.future.exception(), TranslationError) and time.monotonic() < self._deadline:
            part, is_over = part.last, True
        result = part.future.result()
        if part.source.choices and part.last is not None:
            part, result = _chosen(part, part.last, tokenizer)
        restored = restore(part.source, result, tokenizer)
        if not is_over and self._ask_again(leg, part, restored[0], result):
            return None
        if (last := part.without_terms()) is not None:
            last_result = last.future.result()
            before = restore(last.source, last_result, tokenizer)
            if not part.source.is_better(restored[0], before[0]):  # it was in vain
                part, result, restored = last, last_result, before
        sentence = TranslatedSentence.decoded(part.source, result, restored, tokenizer, leg.model.manifest.confidence)
        _observe(leg.model, result, restored[0], sentence)
        return sentence

    def _ask_again(self, leg: Leg, part: Submitted, restored: Restored, result: Result) -> bool:
        """Submits a sentence again for a part, a term or a choice. Returns False if none is due, or it is not taken."""
        source = leg.ask_again(part.source, restored, result.hypotheses[0], result.attention)
        if source is None:
            return False
        # In another flow than the request's other sentences, it would compete with them.
        flow = self._flow.of_long() if result.is_long else self._flow
        try:
            ids = [source.source_ids or ()]
            (future,) = leg.model.engine.submit(ids, leg.options_for(source), self._deadline, flow.first())
        except TranslationError:  # the translation has every part, if not in its best place
            return False
        leg.model.metrics.translations.repeated_total.inc()
        self._second.setdefault(part.place.text, []).append(future)
        self._watch(Submitted(part.place, source, future, part.piece, part))
        return True


def _chosen(part: Submitted, last: Submitted, tokenizer: Tokenizer) -> tuple[Submitted, Result]:
    """Returns the likeliest choice, or the search before it if the choice is worse in any respect.

    The choice takes the place of that search's best hypothesis. The others stay behind it, but for those of its text.
    """
    result, before = part.future.result(), last.future.result()
    texts = [restore(each.source, own, tokenizer)[0] for each, own in ((part, result), (last, before))]
    if part.source.is_worse(*texts):
        return last, before
    best, num_others = result.hypotheses[0], len(before.hypotheses) - 1
    text = tokenizer.decode(best.ids)
    others = [each for each in before.hypotheses if tokenizer.decode(each.ids) != text]
    return part, replace(result, hypotheses=(best, *others[max(0, len(others) - num_others) :]))


def _observe(model: Model, result: Result, restored: Restored, sentence: TranslatedSentence) -> None:
    """Tells the metrics and the trace of a sentence, whose best hypothesis is restored."""
    source, best, metrics = sentence.source, result.hypotheses[0], model.metrics.translations
    metrics.observe(
        source.num_tokens,
        model.tokenizer.num_unknown(source.source_ids or ()),
        best.ids,
        result.timings.decode_seconds,
        is_truncated=best.finish_reason is FinishReason.LENGTH,
        is_looped=best.finish_reason is FinishReason.REPETITION,
    )
    timings = result.timings
    current_trace.get().add_sentence(timings.queue_seconds, timings.encode_seconds, timings.decode_seconds)
    metrics.count_kept(kept.placement.value for kept in restored.parts)
    metrics.count_terms(used.span is not None for used in sentence.terms)
    metrics.garbled_total.inc(restored.is_garbled)
