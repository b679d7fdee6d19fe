"""One document on its way: read, translated as a bulk call, written."""

import asyncio
import contextlib
import enum
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, TypeVar

from google.rpc.code_pb2 import Code as StatusNumber

from babelserve.v1 import translation_pb2 as pb
from server.bundle.codes import CodeTable
from server.documents.formats import FORMATS
from server.documents.parsing import BadDocument, Parsed, Parser
from server.errors import (
    Code,
    DeadlineExceeded,
    InvalidRequest,
    NotServing,
    Overloaded,
    PreconditionFailed,
    TranslationError,
)
from server.fronts.backend import Backend, Caller
from server.fronts.front import raise_failure

logger = logging.getLogger(__name__)

_SECONDS = (
    3600.0  # for all of a document. Half, and long books fail on a busy machine. Twice, and lost ones stay longer
)
# Of the target's language being the document's own. Less, and short documents of a few names are refused. More, and
# what is in the target language already is translated again. Of one word, "Berlin" has 0.73, "Protonenstrahl" 0.80.
_SURE = 0.75
# Seconds before a call that no server has answered is sent again: a minute in all, as a server that is stopped keeps
# its port for up to 50 s. Half, and a server that starts anew is given up. Twice, and a document waits long for a
# server that does not come back.
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0)
_MOST_DETECTED = 4000  # characters whose language stands for the document's

_T = TypeVar("_T")


class State(enum.Enum):
    """How far a document is."""

    QUEUED = enum.auto()
    TRANSLATING = enum.auto()
    DONE = enum.auto()
    ERROR = enum.auto()


class DocumentFailed(TranslationError):
    """A document could not be translated.

    Args:
        error: that has ended its job.
    """

    is_recorded = True  # with the call that has failed, or as a document that could not be read

    def __init__(self, error: TranslationError) -> None:
        super().__init__(str(error))
        self.code = error.code


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A document on its way.

    Attributes:
        owner: whose it is, as `Backend.identify` tells callers apart.
        caller: who has sent it.
        name: of the file, plain.
        extension: a key of `FORMATS`.
        source: the file, open until the document's end.
        num_bytes: of the file, and then of the result; 0 when neither is on the disk any more.
        options: what all texts ask for; source and target are codes or "".
        identity: 32 hexadecimal digits that nobody can guess.
        key: 64 more.
        state: how far it is.
        num_texts, num_done, num_failed: texts in all, finished, and left as they were because they failed or their
            translations did not fit.
        num_characters: of all texts.
        result: the translated file, open while the document is kept or somebody reads it; None before its end, or if
            it has failed.
        num_readers: of the result.
        failure: what has ended it; None unless the state is ERROR.
        started: seconds, by `time.monotonic`.
        ended: is set at its end.
    """

    owner: str
    caller: Caller
    name: str
    extension: str
    source: IO[bytes]
    num_bytes: int
    options: pb.TranslateRequest
    identity: str = field(default_factory=lambda: secrets.token_hex(16))
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    state: State = State.QUEUED
    num_texts: int = 0
    num_done: int = 0
    num_failed: int = 0
    num_characters: int = 0
    result: IO[bytes] | None = None
    num_readers: int = 0
    failure: DocumentFailed | None = None
    started: float = field(default_factory=time.monotonic)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def seconds_remaining(self) -> int:
        """How long it may still take, at least 1; 0 once it has ended."""
        if self.ended.is_set():
            return 0
        if not self.num_done:
            return max(1, self.num_texts // 10)
        per_text = (time.monotonic() - self.started) / self.num_done
        return max(1, math.ceil(per_text * (self.num_texts - self.num_done)))

    async def wait(self, seconds: float | None = None) -> None:
        """Returns at its end, or after some time."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return

    def check_result(self) -> None:
        """Raises DocumentFailed if the document has failed or was given up. It must have ended."""
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    @contextlib.contextmanager
    def reading(self) -> Iterator[IO[bytes]]:
        """Gives a block the result, which stays open until the block ends, even if the document is forgotten before.

        All readers share the position of the file, so they read it by `os.pread`. Raises DocumentFailed as
        `check_result`.
        """
        self.check_result()
        assert self.result is not None, "it has ended"
        self.num_readers += 1
        try:
            yield self.result
        finally:
            self.num_readers -= 1
            if self.failure is not None:  # it was forgotten meanwhile
                self.close()

    def give_up(self) -> None:
        """Ends it with a failure: nobody is given its result any more, not even one that is there."""
        self.state = State.ERROR
        self.failure = self.failure or DocumentFailed(NotServing("the document was given up"))
        self.ended.set()

    def close(self) -> None:
        """Closes its files; while somebody reads the result, the last reader does so at its end."""
        self.source.close()
        if self.num_readers:
            return
        if self.result is not None:
            self.result.close()
        self.num_bytes = 0


async def run(job: Job, backend: Backend, parser: Parser) -> None:
    """Translates a document, and says in the job how that ends. It raises CancelledError alone."""
    try:
        async with asyncio.timeout(_SECONDS):
            await _run(job, backend, parser)
        job.state = State.DONE
    except TranslationError as error:
        job.failure = DocumentFailed(error)
    except TimeoutError:
        late = DeadlineExceeded(f"the document was not translated within {_SECONDS:.0f} seconds")
        job.failure = DocumentFailed(late)
    except Exception:
        logger.exception("a document failed by an error of the server's own")
        job.failure = DocumentFailed(TranslationError("internal error"))
    finally:
        job.source.close()
        if job.state is not State.DONE:
            job.state = State.ERROR
            job.close()
        job.ended.set()


async def _run(job: Job, backend: Backend, parser: Parser) -> None:
    format_name = FORMATS[job.extension].name
    try:
        parsed = await parser.read(format_name, job.source)
    except BadDocument as error:
        await backend.record(error, job.caller)
        raise
    job.state, job.num_texts = State.TRANSLATING, len(parsed.texts)
    job.num_characters = sum(map(len, parsed.texts))
    translations = await _translate(job, backend, parsed) if parsed.texts else []
    target = job.options.target_language_code
    job.result, num_unfit = await parser.write(format_name, job.source, translations, target)
    job.num_failed += num_unfit
    job.num_bytes = job.result.seek(0, 2)


async def _translate(job: Job, backend: Backend, parsed: Parsed) -> list[str | None]:
    """Returns the translation of each text; None for one that failed. Raises TranslationError if all failed."""
    options = pb.TranslateRequest()
    options.CopyFrom(job.options)
    options.mime_type = parsed.mime_type
    options.output.text_once = True
    if not options.source_language_code:
        options.source_language_code = await _detected(job, backend, parsed)
    found: list[str | None] = [None] * len(parsed.texts)
    missing = list(range(len(parsed.texts)))
    status = pb.Status()
    is_done = [False] * len(parsed.texts)

    def take(index: int, translation: pb.Translation) -> None:
        index = missing[index]
        is_done[index] = True
        job.num_done += 1
        if translation.HasField("status"):
            job.num_failed += 1
            status.CopyFrom(translation.status)
        else:
            found[index] = translation.text

    async def translate_missing() -> None:
        missing[:] = [index for index in missing if not is_done[index]]
        if missing:
            await backend.translate_bulk(options, [parsed.texts[index] for index in missing], job.caller, take)

    await _answer(job, backend, translate_missing)
    if job.num_failed == len(parsed.texts):
        failure = TranslationError(status.message)
        failure.code = Code[StatusNumber.Name(status.code)]
        raise failure
    return found


async def _answer(job: Job, backend: Backend, ask: Callable[[], Awaitable[_T]]) -> _T:
    """Returns the answer to a call. It asks again while the server refuses the call, or for a minute without a server.

    The minute begins anew with each text that is done.
    """
    pauses, num_done = iter(_PAUSES), job.num_done
    while True:
        try:
            return await ask()
        except Overloaded as error:
            pauses = iter(_PAUSES)
            await asyncio.sleep(error.retry_after_seconds)
        except NotServing:
            with contextlib.suppress(Overloaded):
                await backend.identify(job.caller)  # raises NotServing if it is this process that shuts down
            if job.num_done > num_done:
                pauses, num_done = iter(_PAUSES), job.num_done
            pause = next(pauses, None)
            if pause is None:
                raise
            await asyncio.sleep(pause)


async def _detected(job: Job, backend: Backend, parsed: Parsed) -> str:
    """Returns the language of a document, by its begin; "" if that is not known. Raises TranslationError.

    It refuses a document that is in the target language.
    """
    first: list[str] = []
    for text in parsed.texts:
        if sum(map(len, first)) >= _MOST_DETECTED:
            break
        first.append(text)
    asked = pb.DetectLanguagesRequest(contents=["\n".join(first)], mime_type=parsed.mime_type)
    try:
        answer = await _answer(job, backend, lambda: backend.detect_languages(asked, job.caller))
    except PreconditionFailed:  # nothing detects here, so the target decides, as for any text
        return ""
    (found,) = answer.detections
    raise_failure([found])
    if not found.confidence:  # nothing was detected, and the language is the first one that is served
        return ""
    if CodeTable([found.language_code]).find(job.options.target_language_code) is None:
        return found.language_code
    if found.confidence < _SURE:
        return ""
    raise InvalidRequest("target_language_code", "Source and target language are equal")
