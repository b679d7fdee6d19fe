"""The sentences of one kind that a lane steps together, from their encoding to their answers."""

import math
from concurrent.futures import InvalidStateError

import numpy as np
from numpy.typing import NDArray

from server.decoding.steering import Step, change_step
from server.engine.aligning import Group, align, needs_attention
from server.engine.dispatch import Dispatch
from server.engine.failing import Faults, end_over, fail
from server.engine.row_plan import RowPlan
from server.engine.sentence import Sentence
from server.errors import TranslationError
from server.network import Decoder, OutOfMemory, Runner, StepKind
from server.telemetry.model_metrics import ModelMetrics


class Batch:
    """Runs sentences of one kind step by step, on the thread of its lane.

    Attributes:
        plan: its sentences and their rows.
    """

    def __init__(
        self, kind: StepKind, runner: Runner, dispatch: Dispatch, metrics: ModelMetrics, faults: Faults
    ) -> None:
        self.kind = kind
        self._runner = runner
        self._dispatch = dispatch
        self._clock = dispatch.clock
        self._metrics = metrics
        self._faults = faults
        self.plan = RowPlan(dispatch.limits.lane.max_rows)
        self._opened: Decoder | None = None
        self._seen_left = 0  # `Dispatch.num_left` at the last look
        self._first_deadline = math.inf  # of the running sentences
        self._unaligned = Group()
        self._has_log_probs = False  # the last step
        self._steps_since_entry = 0

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache's buffers. Another thread may ask."""
        decoder = self._opened  # which the lane may give back meanwhile
        return decoder.cache_bytes if decoder is not None else 0

    @property
    def decoder(self) -> Decoder:
        """The decoder. The first step opens it, so that this step's sentences are answered if that fails."""
        if self._opened is None:
            self._opened = self._runner.open_decoder(self.kind, self._dispatch.limits.lane.max_rows)
        return self._opened

    @property
    def is_entry_due(self) -> bool:
        """Whether sentences may enter before the next step."""
        return not self.plan.running or self._steps_since_entry >= self._runner.entry_interval

    @property
    def sentences(self) -> list[Sentence]:
        """The running sentences, and the finished ones that wait to be aligned."""
        return [*dict.fromkeys(self.plan.running + self._unaligned.sentences)]  # on a GPU some are in both

    def enter(self, sentences: list[Sentence]) -> None:
        """Adds sentences of this kind. The next step encodes them and gives them rows."""
        if not sentences:
            return
        self.plan.add(sentences)
        self._steps_since_entry = 0
        now = self._clock()
        for sentence in sentences:
            sentence.admitted = now
            self._first_deadline = min(self._first_deadline, sentence.deadline)
            if sentence.future.cancelled():
                self._seen_left = -1  # so that the next step looks

    def step(self, came: float, *, is_alone: bool = False, is_full: bool = False) -> None:
        """Drops sentences that are cancelled or late, takes one step with the others, and answers finished ones.

        Args:
            came: instant at which the lane began to wait for its turn.
            is_alone: whether nothing else runs or waits.
            is_full: whether sentences wait for which the lane has no room.
        """
        try:
            self._drop_over(self._clock())
            entering = [sentence for sentence in self.plan.running if not sentence.rows]
            if self.plan.running:
                self._rearrange(entering)
            if entering:
                self._encode(entering)
            rows, started = self.plan.footprint.rows, self._clock()
            stepped = self._take_step(is_alone=is_alone) if rows else None
            if stepped:
                self._finish(self._choose(*stepped))
            self._align()
            if stepped:
                now = self._clock()
                self._dispatch.cost.observe_step(rows, now - started, now - came if is_full else None)
        except Exception as error:  # noqa: BLE001  # whatever it was, every sentence must be answered
            self.fail(error, self.sentences)

    def free_caches(self) -> None:
        """Gives back the caches. The batch must have no sentences."""
        self._opened = None

    def fail(self, error: Exception, sentences: list[Sentence]) -> None:
        """Answers sentences whose encoder run or step has failed.

        They are not tried again, because rows have moved, and some searches may have taken their tokens.
        """
        self.drop(self._faults.note(error, len(sentences)), sentences)

    def drop(self, error: TranslationError, sentences: list[Sentence]) -> None:
        """Answers sentences with an error, and frees their rows."""
        try:
            self._unaligned.remove(sentences)
            self._remove(sentences)
        finally:  # even if the row plan itself is broken
            for sentence in sentences:
                fail(sentence, error, self._metrics)

    def _drop_over(self, now: float) -> None:
        """Answers the sentences whose callers have left or whose deadlines have passed, and frees their rows."""
        num_left = self._dispatch.num_left  # first, so that no caller that leaves meanwhile is missed
        if num_left == self._seen_left and now < self._first_deadline:
            return  # asking each future takes a microsecond for each row of a step
        self._seen_left = num_left
        over = [sentence for sentence in self.plan.running if sentence.is_over(now)]
        self._remove(over)
        self._first_deadline = min((sentence.deadline for sentence in self.plan.running), default=math.inf)
        end_over(over, now, self._metrics)

    def _rearrange(self, entering: list[Sentence]) -> None:
        """Closes the gaps of sentences that have left, lets beams grow, and makes room for sentences that enter.

        If no beam changes and no sentence enters, gaps stay while the step would compute as many rows without them.
        """
        plan, decoder = self.plan, self.decoder
        past, source = plan.longest()
        if entering or plan.parents or decoder.padded_rows(plan.num_rows) < decoder.padded_rows(plan.end):
            decoder.move(plan.arrange(), past)
        decoder.reserve(plan.end, past + 1, max([source, *(len(sentence.source_ids) for sentence in entering)]))

    def _encode(self, admitted: list[Sentence]) -> None:
        """Encodes the sentences that enter, and gives each of them a row.

        If that fails, they are answered with an error; the sentences that run already go on. If there is no memory to
        encode all of them at once, each half is encoded by itself.
        """
        lengths = np.array([len(sentence.source_ids) for sentence in admitted], np.int32)
        source_ids = np.zeros((len(admitted), lengths.max()), np.int64)  # lengths mask the padding
        for row, sentence in zip(source_ids, admitted, strict=True):
            row[: len(sentence.source_ids)] = sentence.source_ids
        try:
            encoded = self._runner.encode(source_ids, lengths)
        except Exception as error:  # noqa: BLE001  # as in step
            half = len(admitted) // 2
            if isinstance(error, OutOfMemory) and half:
                self._faults.note(error, 0)
                self._encode(admitted[:half])
                self._encode(admitted[half:])
            else:
                self.fail(error, admitted)
            return
        now = self._clock()
        self._metrics.encode_duration_seconds.observe(now - admitted[0].admitted)
        self._metrics.source_tokens_total.inc(int(lengths.sum()))
        self._metrics.padded_source_tokens_total.inc(source_ids.size)
        self.decoder.admit(self.plan.place(admitted), encoded, [sentence.source_ids for sentence in admitted])
        for sentence in admitted:
            sentence.encoded = now

    def _take_step(self, *, is_alone: bool) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Decodes one token for every row, and returns what `Decoder.step` returns.

        If there is no memory for the step, the newer half of the sentences is answered with an error, and the method
        returns None. The others take the same step again in the next iteration, because nothing of them has changed.
        """
        started = self._clock()
        try:
            inputs = self.plan.inputs(is_alone=is_alone)
            stepped = self.decoder.step(inputs)
        except OutOfMemory as error:
            running = self.plan.running
            self.fail(error, running[len(running) // 2 :])
            return None
        self._steps_since_entry += 1
        self._metrics.step_duration_seconds.observe(self._clock() - started)
        self._metrics.batch_rows.observe(self.plan.num_rows)
        self._has_log_probs = inputs.with_log_probs
        return stepped

    def _choose(self, top_ids: NDArray[np.int64], top_log_probs: NDArray[np.float32]) -> list[Sentence]:
        """Gives each search its tokens, and returns the sentences that are finished."""
        is_finite = np.isfinite(top_log_probs)
        if not is_finite.all():
            broken = [sentence for sentence in self.plan.running if not is_finite[sentence.rows].all()]
            if broken:  # and not only rows in gaps, whose sentences have been answered
                self.fail(FloatingPointError("log-probabilities that are not finite"), broken)
        ids, log_probs = top_ids.tolist(), top_log_probs.tolist()
        finished, failed = self.plan.advance(ids, log_probs, self._steer(ids, log_probs))
        for sentence, error in failed.items():
            self.fail(error, [sentence])
        return finished

    def _steer(self, top_ids: list[list[int]], top_log_probs: list[list[float]]) -> dict[Sentence, list[float]]:
        """Lets options change the step in place; returns the log-probabilities that searches want.

        If that fails, the sentences whose searches ask for it are answered with an error.
        """
        asking = [each for each in self.plan.running if each.search.is_steered or each.search.wanted]
        if not asking:
            return {}
        try:
            searches = [(sentence.search, sentence.rows) for sentence in asking]
            step = Step(self.decoder.logits(), top_ids, top_log_probs, self._has_log_probs)
            found = change_step(searches, step)
        except Exception as error:  # noqa: BLE001  # as in step
            self.fail(error, asking)
            return {}
        return dict(zip(asking, found, strict=True))

    def _finish(self, finished: list[Sentence]) -> None:
        """Answers finished sentences. Sentences that need an alignment wait for it."""
        asking = list(filter(needs_attention, finished))
        self._unaligned.add(asking, self.decoder)
        if self.decoder.keeps_sources:
            self._remove(asking)
        self._answer([sentence for sentence in finished if not needs_attention(sentence)])

    def _align(self) -> None:
        """Aligns the finished sentences that wait for it, if it is time, and answers them.

        If that fails, they are answered with an error, and the others as usual.
        """
        if not self._unaligned.sentences:
            return
        due = self._unaligned.due(self.plan.running, may_wait=self.decoder.keeps_sources)
        try:
            align(due, self.decoder)
        except Exception as error:  # noqa: BLE001  # as in step
            self.fail(error, due)
        else:
            self._answer(due)
            self._unaligned.remove(due)

    def _answer(self, finished: list[Sentence]) -> None:
        now = self._clock()
        for sentence in finished:
            if sentence.has_own_length:
                self._dispatch.cost.observe_sentence(len(sentence.source_ids), sentence.search.num_tokens)
            if sentence.forecast_seconds:
                self._metrics.observe_queue_wait(sentence.forecast_seconds, now - sentence.submitted)
            try:
                sentence.future.set_result(sentence.result(now))
                self._metrics.count_sentences("ok")
                self._metrics.generated_tokens_total.inc(sentence.search.num_tokens)
            except InvalidStateError:  # the caller left during this step
                self._metrics.count_sentences("cancelled")
                self._metrics.count_wasted("cancelled", sentence.search.num_tokens)
            except Exception as error:  # noqa: BLE001  # the neighbours are answered
                self.fail(error, [sentence])
        self._remove(finished)

    def _remove(self, sentences: list[Sentence]) -> None:
        """Takes sentences out of the batch; the caller answers them."""
        if sentences:
            self._dispatch.count(self.plan.remove(sentences), -1)
