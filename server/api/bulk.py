"""Many texts with the same options, whatever carries the messages; `server.translation.bulk` does the work."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from functools import partial

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Priority, caller
from server.api.messages import read_request, response, status_message
from server.errors import InvalidRequest, TranslationError
from server.translation.assembling import assemble
from server.translation.bulk import Bulk, BulkAnswer, BulkText
from server.translation.memory import MemoryBudget, answer_need
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator


async def translate_bulk(
    translator: Translator,
    running: RunningCalls,
    options: pb.TranslateRequest,
    texts: AsyncIterator[BulkText],
    seconds: float | None,
) -> AsyncGenerator[pb.TranslateBulkResponse]:
    """Yields the answer to each text when it is done. What a text holds is given back when the next is asked for.

    Args:
        translator: accepts texts.
        running: says when the server shuts down.
        options: what all texts ask for, without texts. Without a priority they have PRIORITY_LOW.
        texts: are read when there is room for them.
        seconds: that the caller still waits; None for ever.

    Raises:
        TranslationError: the call ends, see `Bulk.answers`.
    """
    if options.contents:
        rule = "must be empty: each text is a message of its own"
        raise InvalidRequest("options.contents", f"{rule}, not {len(options.contents)} texts")
    request = read_request(options, seconds, caller.get())
    if options.priority == pb.PRIORITY_UNSPECIFIED:
        request = replace(request, priority=Priority.LOW)
    bulk = Bulk(translator, running, request, partial(_response, translator.memory, options.output))
    async with contextlib.aclosing(bulk.answers(_each_alone(texts))) as answers:
        async for answer in answers:
            yield answer


async def _each_alone(texts: AsyncIterator[BulkText]) -> AsyncGenerator[list[BulkText]]:
    """Yields groups of one text, because a client may wait for an answer before it sends the next text."""
    async for text in texts:
        yield [text]


async def _response(memory: MemoryBudget, output: pb.OutputOptions, answer: BulkAnswer) -> pb.TranslateBulkResponse:
    """Returns the message of an answer, whose memory counts until the caller has read it."""
    job = answer.outcome
    if isinstance(job, TranslationError):
        whole = pb.TranslateResponse(translations=[pb.Translation(status=status_message(job))])
    else:
        whole = await assemble(job, partial(response, job, 0.0, output))
    (translation,) = whole.translations
    if translation.HasField("status"):  # it calls the text by its place in its job, and the client knows the id alone
        status = translation.status
        status.message = status.message.replace("contents[0]", f"contents[{answer.identity}]", 1)
    message = pb.TranslateBulkResponse(
        id=answer.identity,
        translation=translation,
        model=whole.model,
        model_version=whole.model_version,
        glossaries=whole.glossaries,
    )
    answer.held.callback(memory.keep(answer_need(message.ByteSize())))
    return message
