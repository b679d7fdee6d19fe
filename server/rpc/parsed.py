"""Makes handlers of gRPC of functions that take a message and the seconds that its caller still waits."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from google.protobuf.message import Message

from server.api.messages import parse
from server.rpc.intake import Intake

_M = TypeVar("_M", bound=Message)
_R = TypeVar("_R", bound=Message)


def parsed(
    kind: type[_M],
    handler: Callable[[_M, float | None], Awaitable[_R]],
    intake: Intake,
    check: Callable[[float | None], None] = lambda _: None,
) -> Callable[[Any, Any], Awaitable[bytes]]:
    """Returns a handler that reads its message itself, so that bytes that are no message are answered like any request.

    The memory of its answer is counted as long as gRPC has the answer, which is long if the caller does not read.

    Args:
        kind: the class of the message.
        handler: takes the message, and the seconds that the caller still waits; None for ever.
        intake: reads the message.
        check: takes these seconds, and raises an error if the message should not even be read.
    """

    async def handle(_: Any, context: Any) -> bytes:
        check(context.time_remaining())
        data = await intake.read(context)
        with intake.hold(data):
            await intake.wait_to_parse(data)
            response = await handler(parse(kind, data), context.time_remaining())
            answer = response.SerializeToString()
            intake.keep(answer, context)
            return answer

    return handle


def parsed_stream(
    kind: type[_M],
    handler: Callable[[_M, float | None], AsyncIterator[_R]],
    intake: Intake,
    check: Callable[[float | None], None] = lambda _: None,
) -> Callable[[Any, Any], AsyncIterator[bytes]]:
    """Does what `parsed` does, for a handler that yields.

    The memory that the request needs is held until the last response is written. A response that is not sent by then is
    counted for longer.
    """

    async def handle(_: Any, context: Any) -> AsyncIterator[bytes]:
        check(context.time_remaining())
        data = await intake.read(context)
        with intake.hold(data):
            await intake.wait_to_parse(data)
            async for response in handler(parse(kind, data), context.time_remaining()):
                answer = response.SerializeToString()
                try:
                    yield answer
                except GeneratorExit:
                    intake.keep(answer, context)
                    raise

    return handle
