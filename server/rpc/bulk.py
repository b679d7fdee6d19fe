"""`TranslateBulk`: reads options and texts, and writes answers. `server.translation.bulk` does the work between."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Priority, caller
from server.api.messages import parse, read_request, response, status_message
from server.errors import InvalidRequest, TranslationError
from server.rpc.intake import MAX_MESSAGE_BYTES, Intake
from server.translation.bulk import Bulk, BulkAnswer, BulkText
from server.translation.request import TranslationRequest
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

_CALL_BYTES = 2 * MAX_MESSAGE_BYTES  # of a call that waits: the longest message, as it came and parsed


class BulkHandler:
    """Handles calls of `TranslateBulk`.

    Args:
        translator: accepts texts.
        intake: reads messages.
        running: says when the server shuts down.
    """

    def __init__(self, translator: Translator, intake: Intake, running: RunningCalls) -> None:
        self._translator = translator
        self._intake = intake
        self._running = running

    async def handle(self, _: Any, context: Any) -> AsyncIterator[bytes]:
        """Yields the responses of a call. What a text holds is given back when the next response is asked for.

        Raises:
            TranslationError: the call ends, see `Bulk.answers`.
        """
        with self._translator.memory.hold(_CALL_BYTES):
            first = parse(pb.TranslateBulkRequest, await self._intake.read(context))
            options = _read_options(first, context)
            bulk = Bulk(self._translator, self._running, options)
            async with contextlib.aclosing(bulk.answers(self._texts(context))) as answers:
                async for answer in answers:
                    message = await _response(answer, first.options.output)
                    yield message.SerializeToString()

    async def _texts(self, context: Any) -> AsyncIterator[BulkText]:
        while (data := await self._intake.read_next(context)) is not None:
            message = parse(pb.TranslateBulkRequest, data)
            if message.WhichOneof("part") != "text":
                raise InvalidRequest("text", "must be set in every message after the first one")
            yield BulkText(message.text.id, message.text.content, len(data))


def _read_options(message: pb.TranslateBulkRequest, context: Any) -> TranslationRequest:
    """Returns what the first message asks for. Raises InvalidRequest."""
    if message.WhichOneof("part") != "options":
        raise InvalidRequest("options", "must be set in the first message of a call")
    if message.options.contents:
        rule = "must be empty: each text is a message of its own"
        raise InvalidRequest("options.contents", f"{rule}, not {len(message.options.contents)} texts")
    options = read_request(message.options, context.time_remaining(), caller.get())
    if message.options.priority == pb.PRIORITY_UNSPECIFIED:
        return replace(options, priority=Priority.LOW)
    return options


async def _response(answer: BulkAnswer, output: pb.OutputOptions) -> pb.TranslateBulkResponse:
    job = answer.outcome
    if isinstance(job, TranslationError):
        whole = pb.TranslateResponse(translations=[pb.Translation(status=status_message(job))])
    else:
        whole = await job.assemble(partial(response, job, 0.0, output))
    (translation,) = whole.translations
    if translation.HasField("status"):  # it calls the text by its place in its job, and the client knows the id alone
        status = translation.status
        status.message = status.message.replace("contents[0]", f"contents[{answer.identity}]", 1)
    return pb.TranslateBulkResponse(
        id=answer.identity,
        translation=translation,
        model=whole.model,
        model_version=whole.model_version,
        glossaries=whole.glossaries,
    )
