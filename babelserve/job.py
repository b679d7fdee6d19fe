"""Translates any amount of lines: line i of the output is the translation of line i of the input.

Lines travel in batches, several requests at a time, and come back in order. A job adapts to its server and outlives the
server's restarts (pace.py). A text that is to blame fails alone: its batch is halved until it is found.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar, Unpack

import grpc

from babelserve.client import Client
from babelserve.errors import (
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    ServerFailed,
    TranslationError,
    Unavailable,
)
from babelserve.lines import Line, TranslatedLine, batches, failed_line
from babelserve.messages import TranslateOptions
from babelserve.pace import Pace

_T = TypeVar("_T")

_MOST_TRIES = 3  # of what may be a fault of the request itself
_MAY_PASS = {  # codes of what another try may not meet
    grpc.StatusCode.CANCELLED,  # we cancel nothing that we wait for, so it was somebody on the way
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
}


def translate_lines(
    client: Client,
    lines: Iterable[Line],
    *,
    target: str,
    batch_lines: int,
    in_flight: int,
    patience_seconds: float = 0.0,
    tell: Callable[[str], object] = lambda message: None,
    **options: Unpack[TranslateOptions],
) -> Generator[list[TranslatedLine], None, None]:
    """Yields batch after batch, in order, reading ahead only as far as `in_flight` requests reach.

    A request that the server refuses although it took an earlier one, or because of its texts, is not the options'
    fault: its lines fail alone.

    Args:
        client: best made with `max_attempts=1` if there is patience, so that the job hears of every refusal.
        lines: the input.
        target: code of the target language.
        batch_lines: most lines of a request, 1 to 1024; fewer while the server has no room for them.
        in_flight: most requests at a time, at least 1; likewise.
        patience_seconds: after which a server that is busy or away, and answers nothing at all, ends the job.
        tell: takes a line for the user, when waiting begins.
        options: see `TranslateOptions`.

    Raises:
        TranslationError: The server refused the options, or failed; all lines before were yielded.
    """
    pace = Pace(in_flight=in_flight, batch_lines=batch_lines, patience_seconds=patience_seconds, tell=tell)
    job = _Job(client, pace, target, options)
    # The pool's threads wait for answers; leaving early closes the client, which ends their calls.
    executor = ThreadPoolExecutor(in_flight, thread_name_prefix="babelserve-translate")
    running: deque[Future[list[TranslatedLine]]] = deque()
    try:
        for number, batch in enumerate(batches(lines, lambda: pace.batch_lines)):
            running.append(executor.submit(job.translate, number, batch))
            if len(running) >= in_flight:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    except BaseException:
        pace.close()
        client.close()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def patiently(call: Callable[[], _T], patience_seconds: float, tell: Callable[[str], object]) -> _T:
    """Returns what a call gives; calls again while the server is busy or away, as patience lasts. Raises its errors."""
    pace = Pace(in_flight=1, batch_lines=1, patience_seconds=patience_seconds, tell=tell)
    while True:
        with pace.turn(0) as started:
            try:
                return call()
            except (Overloaded, Unavailable, DeadlineExceeded) as error:
                pace.failed(error, started)


@dataclass(slots=True)
class _Job:
    """What all batches share."""

    client: Client
    pace: Pace
    target: str
    options: TranslateOptions
    has_succeeded: bool = False

    def translate(self, number: int, batch: list[Line]) -> list[TranslatedLine]:
        """Translates what can be sent of a batch, and puts the answers back among the lines that were never sent."""
        lines = [line for line in batch if line.error is None]
        answers = iter(self._answers(number, lines) if lines else [])
        return [
            next(answers) if line.error is None else failed_line(line, grpc.StatusCode.INVALID_ARGUMENT, line.error)
            for line in batch
        ]

    def _answers(self, number: int, lines: list[Line]) -> list[TranslatedLine]:
        """Translates lines; asks again for those that have failed alone by what may pass, while that helps some."""
        answers = self._ask(number, lines)
        left = _passing(answers)
        while left and self.pace.is_patient:
            try:
                renewed = self._ask(number, [lines[index] for index in left])
            except (DeadlineExceeded, ServerFailed):
                break
            for index, answer in zip(left, renewed, strict=True):
                answers[index] = answer
            before, left = len(left), _passing(answers)
            if len(left) == before:
                break
        return answers

    def _ask(self, number: int, lines: list[Line]) -> list[TranslatedLine]:
        """Translates lines in as many requests as the server wants, each as often as there is patience for."""
        num_faults = 0
        while True:
            with self.pace.turn(number) as started:
                try:
                    return self._send(lines)
                except TranslationError as error:
                    num_faults += isinstance(error, ServerFailed | DeadlineExceeded)
                    is_their_fault = self._judge(error, len(lines), num_faults, started)
                    reason = error
            if is_their_fault and len(lines) == 1:
                return [failed_line(lines[0], reason.code, str(reason))]
            if is_their_fault or len(lines) > self.pace.batch_lines:
                middle = len(lines) // 2
                return self._ask(number, lines[:middle]) + self._ask(number, lines[middle:])

    def _judge(self, error: TranslationError, num_lines: int, num_faults: int, started: float) -> bool:
        """Tells whether some of the lines are to blame, and not the moment; raises what fails the job."""
        if isinstance(error, InvalidRequest):
            if not self.has_succeeded and not str(error).startswith("contents"):
                raise error
            return True
        if error.code not in _MAY_PASS or (isinstance(error, ServerFailed) and num_faults >= _MOST_TRIES):
            raise error
        self.pace.failed(error, started)
        return isinstance(error, DeadlineExceeded) and (num_lines > 1 or num_faults >= _MOST_TRIES)

    def _send(self, lines: list[Line]) -> list[TranslatedLine]:
        result = self.client.translate([line.text for line in lines], target=self.target, **self.options)
        self.has_succeeded = True
        self.pace.answered()
        return [
            TranslatedLine(
                translation=translation,
                num_bytes=line.num_bytes,
                model=result.model,
                model_version=result.model_version,
                glossaries=result.glossaries,
            )
            for line, translation in zip(lines, result.translations, strict=True)
        ]


def _passing(answers: list[TranslatedLine]) -> list[int]:
    """Indices of lines that have failed alone by what may pass."""
    errors = [answer.translation.error for answer in answers]
    return [index for index, error in enumerate(errors) if error is not None and error.code in _MAY_PASS]
