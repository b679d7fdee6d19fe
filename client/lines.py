r"""Line-by-line translation of any amount of text: line i of the output is the translation of line i of the input.

Lines travel in batches, several requests at a time, and come back in order. Only "\n" ends a line; every other kind of
white space, "\r" included, is part of it and comes back as it was.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Unpack

import grpc

from client.client import Client
from client.errors import InvalidRequest, ServerFailed
from client.messages import TranslateOptions
from client.results import FinishReason, TextError, TranslateResult, Translation

MAX_TEXT_BYTES = 2 * 2**20  # as translation.proto says of TranslateRequest.contents
# Small enough that a batch of long lines is not one long request; the server batches by itself anyway.
MAX_BATCH_BYTES = 64 * 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the input, without its end; `error` is set when it can't be sent at all."""

    text: str
    num_bytes: int
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedLine:
    """A line's translation; `num_bytes` is the source line's size, its end included."""

    translation: Translation
    num_bytes: int
    model: str
    model_version: str


def read_line(raw: bytes) -> Line:
    """Makes a line of its bytes; one that is too long or no UTF-8 fails alone, like a text in a request."""
    content = raw.removesuffix(b"\n")
    if len(content) > MAX_TEXT_BYTES:
        error = f"the line has {len(content)} bytes; the limit is {MAX_TEXT_BYTES}"
        return Line(text="", num_bytes=len(raw), error=error)
    try:
        return Line(text=content.decode(), num_bytes=len(raw))
    except UnicodeDecodeError as fault:
        return Line(text="", num_bytes=len(raw), error=f"byte {fault.start} of the line is not valid UTF-8")


def batches(lines: Iterable[Line], max_lines: int) -> Iterator[list[Line]]:
    """Cuts lines into batches of at most `max_lines` and, but for a single longer line, `MAX_BATCH_BYTES`."""
    batch: list[Line] = []
    num_bytes = 0
    for line in lines:
        if batch and num_bytes + line.num_bytes > MAX_BATCH_BYTES:
            yield batch
            batch, num_bytes = [], 0
        batch.append(line)
        num_bytes += line.num_bytes
        if len(batch) == max_lines:
            yield batch
            batch, num_bytes = [], 0
    if batch:
        yield batch


def translate_lines(
    client: Client,
    lines: Iterable[Line],
    *,
    target: str,
    batch_lines: int,
    in_flight: int,
    **options: Unpack[TranslateOptions],
) -> Generator[list[TranslatedLine], None, None]:
    """Yields batch after batch, in order, reading ahead only as far as `in_flight` requests reach.

    A batch that the server refuses although it took an earlier one is not the options' fault: its lines fail alone.

    Raises:
        TranslationError: The server refused the first batch, or failed; all lines before were yielded.
    """
    # The pool's threads wait for answers; leaving early closes the client, which ends their calls.
    executor = ThreadPoolExecutor(in_flight, thread_name_prefix="babelserve-translate")
    running: deque[tuple[list[Line], Future[TranslateResult | None]]] = deque()
    has_succeeded = False

    def finish() -> list[TranslatedLine]:
        nonlocal has_succeeded
        batch, future = running.popleft()
        try:
            result = future.result()
        except InvalidRequest as error:
            if not has_succeeded:
                raise
            return [_failed(line, line.error or str(error)) for line in batch]
        has_succeeded = has_succeeded or result is not None
        return _join(batch, result)

    try:
        for batch in batches(lines, batch_lines):
            texts = [line.text for line in batch if line.error is None]
            running.append((batch, executor.submit(_translate, client, texts, target, options)))
            if len(running) >= in_flight:
                yield finish()
        while running:
            yield finish()
    except BaseException:
        client.close()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _translate(client: Client, texts: list[str], target: str, options: TranslateOptions) -> TranslateResult | None:
    """Translates what can be sent of a batch; None when that is nothing."""
    if not texts:
        return None
    result = client.translate(texts, target=target, **options)
    if len(result.translations) != len(texts):
        raise ServerFailed(f"the server answered {len(texts)} texts with {len(result.translations)} translations")
    return result


def _join(batch: list[Line], result: TranslateResult | None) -> list[TranslatedLine]:
    """Puts the answers back among the lines that were never sent."""
    answers = iter(result.translations if result else ())
    joined = []
    for line in batch:
        if line.error is not None:
            joined.append(_failed(line, line.error))
        else:
            assert result is not None, "a line without an error was sent"
            joined.append(
                TranslatedLine(
                    translation=next(answers),
                    num_bytes=line.num_bytes,
                    model=result.model,
                    model_version=result.model_version,
                )
            )
    return joined


def _failed(line: Line, message: str) -> TranslatedLine:
    translation = Translation(
        text="",
        score=0.0,
        finish_reason=FinishReason.UNSPECIFIED,
        hypotheses=(),
        sentences=(),
        source_tokens=0,
        target_tokens=0,
        error=TextError(code=grpc.StatusCode.INVALID_ARGUMENT, message=message),
    )
    return TranslatedLine(translation=translation, num_bytes=line.num_bytes, model="", model_version="")
