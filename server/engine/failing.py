"""Answers sentences with errors, and turns a fault of the network into an error that callers understand."""

import logging
import threading
from collections.abc import Iterable
from concurrent.futures import InvalidStateError

from server.engine.sentence import Sentence
from server.errors import DeadlineExceeded, EngineFailed, NotServing, Overloaded, TranslationError
from server.network import DeviceLost, OutOfMemory
from server.telemetry.log import describe
from server.telemetry.model_metrics import ModelMetrics

logger = logging.getLogger(__name__)


class Faults:
    """Counts and logs the encoder runs and steps of a lane that have failed. The supervisor reads the counts."""

    def __init__(self, metrics: ModelMetrics, alarm: threading.Event) -> None:
        self._metrics = metrics
        self._alarm = alarm
        self.count = 0
        self.has_lost_device = False

    def note(self, error: Exception, num_sentences: int) -> TranslationError:
        """Notes a fault, and returns the error that this number of sentences is answered with.

        It tells the caller to try again only if the device or the memory failed. After any other fault the sentence
        itself may be the cause, and would make one server after another fail. Its words are fixed, because those of the
        fault are about tensors.
        """
        answer: TranslationError = EngineFailed("translation failed")
        if isinstance(error, DeviceLost):
            self.has_lost_device = True
            answer = NotServing("the server has lost its device; the request may be sent again")
        if isinstance(error, OutOfMemory):
            answer = Overloaded("there is no memory for this sentence beside the others that run", "memory")
        answer.cause = str(error)
        self.count += 1
        self._metrics.engine_failures_total.inc()
        facts = {"sentences": num_sentences, "error": describe(error)}
        logger.error("an encoder run or a step failed", exc_info=error, extra={"facts": facts})
        self._alarm.set()
        return answer


def end_over(sentences: Iterable[Sentence], now: float, metrics: ModelMetrics) -> None:
    """Answers sentences whose callers have left, or whose deadlines have passed or cannot be met."""
    for sentence in sentences:
        passed = DeadlineExceeded("the deadline passed before the translation was done")
        late = Overloaded("the answer would have come after the deadline", "deadline")
        fail(sentence, passed if sentence.is_over(now) else late, metrics)


def fail(sentence: Sentence, error: TranslationError, metrics: ModelMetrics) -> None:
    """Answers a sentence with an error, unless its caller has left."""
    is_late = isinstance(error, Overloaded) and error.reason == "deadline"
    outcome = "late" if is_late else "deadline" if isinstance(error, DeadlineExceeded) else "error"
    try:
        sentence.future.set_exception(error)
    except InvalidStateError:  # the caller left already
        outcome = "cancelled"
    metrics.count_sentences(outcome)
    metrics.count_wasted(outcome, sentence.search.num_tokens)
