r"""Lines of the input, and what becomes of them.

Only "\n" ends a line; every other kind of white space, "\r" included, is part of it and comes back as it was.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import grpc

from babelserve.results import FinishReason, TextError, Translation
from babelserve.terms import UsedGlossary

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
    glossaries: tuple[UsedGlossary, ...] = ()


def lines_of(file: BinaryIO) -> Iterator[Line]:
    """Yields the lines of a file; of one that is too long it keeps no more than it takes to know that."""
    most = MAX_TEXT_BYTES + 2  # with the end, and one that is too many
    while raw := file.readline(most):
        num_bytes, more = len(raw), raw
        while len(more) == most and not more.endswith(b"\n"):
            more = file.readline(most)
            num_bytes += len(more)
        yield read_line(raw) if num_bytes == len(raw) else _too_long(num_bytes, ends=more.endswith(b"\n"))


def read_line(raw: bytes) -> Line:
    """Makes a line of its bytes; one that is too long or no UTF-8 fails alone, like a text in a request."""
    content = raw.removesuffix(b"\n")
    if len(content) > MAX_TEXT_BYTES:
        return _too_long(len(raw), ends=raw.endswith(b"\n"))
    try:
        return Line(text=content.decode(), num_bytes=len(raw))
    except UnicodeDecodeError as fault:
        return Line(text="", num_bytes=len(raw), error=f"byte {fault.start} of the line is not valid UTF-8")


def _too_long(num_bytes: int, *, ends: bool) -> Line:
    error = f"the line has {num_bytes - ends} bytes; the limit is {MAX_TEXT_BYTES}"
    return Line(text="", num_bytes=num_bytes, error=error)


def batches(lines: Iterable[Line], max_lines: Callable[[], int]) -> Iterator[list[Line]]:
    """Cuts lines into batches of at most `max_lines()` and, but for a single longer line, `MAX_BATCH_BYTES`."""
    batch: list[Line] = []
    num_bytes = 0
    for line in lines:
        if batch and num_bytes + line.num_bytes > MAX_BATCH_BYTES:
            yield batch
            batch, num_bytes = [], 0
        batch.append(line)
        num_bytes += line.num_bytes
        if len(batch) >= max_lines():
            yield batch
            batch, num_bytes = [], 0
    if batch:
        yield batch


def failed_line(line: Line, code: grpc.StatusCode, message: str) -> TranslatedLine:
    """Returns what stands for a line that has no translation, with the reason."""
    translation = Translation(
        text="",
        score=0.0,
        finish_reason=FinishReason.UNSPECIFIED,
        hypotheses=(),
        sentences=(),
        source_tokens=0,
        target_tokens=0,
        error=TextError(code=code, message=message),
    )
    return TranslatedLine(translation=translation, num_bytes=line.num_bytes, model="", model_version="")
