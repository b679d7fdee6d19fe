r"""Lines of the input, and what becomes of them.

Only "\n" ends a line; every other kind of white space, "\r" included, is part of it and comes back as it was.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import grpc

from babelserve.results import FinishReason, TextError, Translation

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


def facts(line: TranslatedLine) -> dict[str, object]:
    """Returns what `--json` shows of a line, without what it has not."""
    translation = line.translation
    fields: dict[str, object] = {
        "text": translation.text,
        "score": translation.score,
        "finish_reason": translation.finish_reason.value,
        "source_tokens": translation.source_tokens,
        "target_tokens": translation.target_tokens,
        "hypotheses": [dataclasses.asdict(hypothesis) for hypothesis in translation.hypotheses],
        "model": line.model,
        "model_version": line.model_version,
    }
    if translation.detected is not None:
        fields["detected"] = dataclasses.asdict(translation.detected)
    if translation.route:
        fields["route"] = [dataclasses.asdict(leg) for leg in translation.route]
    if translation.kept:
        fields["kept"] = [{"text": part.text, "placement": part.placement.value} for part in translation.kept]
    if translation.terms:
        fields["terms"] = [dataclasses.asdict(term) for term in translation.terms]
    if translation.error is not None:
        fields["error"] = {"code": translation.error.code.name, "message": translation.error.message}
    return fields
