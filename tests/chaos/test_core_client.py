import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest_asyncio

from tests.chaos.core_client import CoreConnection, connect_core
from tests.chaos.test_http2 import PATH, echo

SECONDS = 5.0


@pytest_asyncio.fixture
async def connection() -> AsyncIterator[CoreConnection]:
    server = grpc.aio.server()
    methods = {"Method": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("service", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    connection = await connect_core(f"127.0.0.1:{port}", PATH)
    yield connection
    connection.close()
    await server.stop(None)


async def call(connection: CoreConnection, request: bytes, timeout: float = SECONDS) -> tuple[str, bytes, Any]:
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    connection.call(struct.pack(">BI", 0, len(request)) + request, timeout, lambda *outcome: ended.set_result(outcome))
    outcome: tuple[str, bytes, Any] = await ended
    return outcome


async def test_an_answer_comes_back_behind_a_prefix(connection: CoreConnection) -> None:
    status, body, _ = await call(connection, b"request")

    assert (status, body[5:]) == ("OK", b"request")


async def test_a_refusal_says_when_to_come_back(connection: CoreConnection) -> None:
    status, _, fields = await call(connection, b"refuse")

    assert status == "RESOURCE_EXHAUSTED"
    assert fields[b"grpc-retry-pushback-ms"] == b"70"


async def test_the_deadline_ends_a_call(connection: CoreConnection) -> None:
    status, _, _ = await call(connection, b"wait", timeout=0.1)

    assert status == "DEADLINE_EXCEEDED"


async def test_a_cancelled_call_tells_nothing(connection: CoreConnection) -> None:
    told: list[str] = []
    stream = connection.call(bytes(5) + b"wait", SECONDS, lambda outcome, *_: told.append(outcome))
    await asyncio.sleep(0)

    connection.cancel(stream)
    await asyncio.gather(stream, return_exceptions=True)

    assert (stream.cancelled(), told) == (True, [])
