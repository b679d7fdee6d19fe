"""`TranslateBulk`: reads options and texts, and writes answers. `server.api.bulk` does the work between."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.api.handlers import Api
from server.api.messages import parse
from server.errors import InvalidRequest
from server.rpc.intake import MAX_MESSAGE_BYTES, Intake
from server.translation.bulk import BulkText
from server.translation.memory import MemoryBudget
from server.translation.running_calls import RunningCalls

_CALL_BYTES = 2 * MAX_MESSAGE_BYTES  # of a call that waits: the longest message, as it came and parsed


class BulkHandler:
    """Handles calls of `TranslateBulk`.

    Args:
        api: answers messages.
        intake: reads messages.
        memory: counts the memory of all requests.
        running: says when the server shuts down.
    """

    def __init__(self, api: Api, intake: Intake, memory: MemoryBudget, running: RunningCalls) -> None:
        self._api = api
        self._intake = intake
        self._memory = memory
        self._running = running

    async def handle(self, _: Any, context: Any) -> AsyncIterator[bytes]:
        """Yields the responses of a call. What a text holds is given back when the next response is asked for.

        Raises:
            TranslationError: the call ends, see `Bulk.answers`.
        """
        with self._memory.hold(_CALL_BYTES):
            data = await self._intake.read(context)
            await self._intake.wait_to_parse(data)
            first = parse(pb.TranslateBulkRequest, data)
            if first.WhichOneof("part") != "options":
                raise InvalidRequest("options", "must be set in the first message of a call")
            seconds = context.time_remaining()
            answers = self._api.translate_bulk(first.options, self._texts(context), self._running, seconds)
            async with contextlib.aclosing(answers):
                async for answer in answers:
                    yield answer.SerializeToString()

    async def _texts(self, context: Any) -> AsyncIterator[BulkText]:
        while (data := await self._intake.read_next(context)) is not None:
            message = parse(pb.TranslateBulkRequest, data)
            if message.WhichOneof("part") != "text":
                raise InvalidRequest("text", "must be set in every message after the first one")
            yield BulkText(message.text.id, message.text.content, len(data))
