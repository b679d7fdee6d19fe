import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest_asyncio
from hpack import Encoder

from tests.chaos.http2 import Connection, connect, literal, read_headers

PATH = "/service/Method"


async def echo(request: bytes, context: Any) -> bytes:
    """Returns the request, refuses "refuse", and never answers "wait"."""
    if request == b"refuse":
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", (("grpc-retry-pushback-ms", "70"),))
    if request == b"wait":
        await asyncio.Event().wait()
    return request


@pytest_asyncio.fixture
async def connection() -> AsyncIterator[Connection]:
    server = grpc.aio.server(options=[("grpc.max_concurrent_streams", 2)])
    methods = {"Method": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("service", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    connection = await connect(f"127.0.0.1:{port}", PATH)
    yield connection
    connection.close()
    await server.stop(None)


async def call(connection: Connection, request: bytes, timeout: float = 5.0) -> tuple[str, bytes, dict[bytes, bytes]]:
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    message = struct.pack(">BI", 0, len(request)) + request
    connection.call(message, timeout, lambda *outcome: ended.set_result(outcome))
    outcome: tuple[str, bytes, dict[bytes, bytes]] = await ended
    return outcome


async def test_an_answer_comes_back_whole(connection: Connection) -> None:
    request = bytes(range(256)) * 100  # more than a frame

    status, body, _ = await call(connection, request)

    assert (status, body[5:]) == ("0", request)


async def test_a_refusal_says_when_to_come_back(connection: Connection) -> None:
    status, _, fields = await call(connection, b"refuse")

    assert status == str(grpc.StatusCode.RESOURCE_EXHAUSTED.value[0])
    assert fields[b"grpc-retry-pushback-ms"] == b"70"


async def test_more_calls_than_the_server_takes_at_once_wait_here(connection: Connection) -> None:
    """C-core refuses a call that comes before it has done with one that it answered: up to 3 of 50 in 15 trials."""
    outcomes = await asyncio.gather(*(call(connection, b"%d" % number) for number in range(50)))

    answered = {number: body[5:] for number, (status, body, _) in enumerate(outcomes) if status == "0"}
    assert answered == {number: b"%d" % number for number in answered}
    assert {status for status, _, _ in outcomes} <= {"0", "REFUSED_STREAM"}
    assert len(answered) >= 40


async def test_the_deadline_is_told_to_the_server(connection: Connection) -> None:
    status, _, _ = await call(connection, b"wait", timeout=0.1)

    assert status == str(grpc.StatusCode.DEADLINE_EXCEEDED.value[0])


def test_fields_that_name_themselves_are_read_and_others_passed_over() -> None:
    block = b"\x20\x88" + literal(b"grpc-status", b"8") + b"\x5f\x0bapplication" + literal(b"x", b"")

    assert read_headers(block) == {b"grpc-status": b"8", b"x": b""}


def test_fields_of_a_server_that_compresses_them_are_read() -> None:
    fields: dict[bytes | str, bytes | str] = {b"grpc-status": b"8", b"grpc-retry-pushback-ms": b"1000"}
    encoder = Encoder()
    encoder.header_table_size = 0

    assert read_headers(encoder.encode(fields)) == fields
