"""What a connection may do before it has sent a request, over real sockets."""

import asyncio
import socket

import pytest

from server.telemetry.metrics import Metrics
from server.web import connection
from tests.server.web.client import head, is_cut, read_answer
from tests.server.web.conftest import Connect, OpenSite, Site


async def test_a_head_that_never_ends_is_refused(site: Site, connect: Connect) -> None:
    reader, writer = await connect(site.port)
    writer.write(b"GET /healthz HTTP/1.1\r\n")
    line = b"x: " + b"a" * 1000 + b"\r\n"
    for _ in range(20):
        writer.write(line)

    assert b" 431 " in await reader.read()


@pytest.mark.parametrize("begin", [b"", b"GET /healthz HTT", head("GET", "/healthz", {})[:-2]])
async def test_who_sends_no_whole_head_is_put_out(
    site: Site, connect: Connect, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr(connection, "_HEAD_SECONDS", 0.05)
    reader, writer = await connect(site.port)
    writer.write(begin)

    assert await is_cut(reader)


async def test_a_head_in_pieces_is_read_and_the_connection_stays(
    site: Site, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_HEAD_SECONDS", 0.5)
    reader, writer = await connect(site.port)
    for _ in range(2):
        for piece in head("GET", "/healthz", {}):
            writer.write(bytes([piece]))
        assert (await read_answer(reader)).status == 200
    await asyncio.sleep(0.6)  # idle for longer than a head may take

    writer.write(head("GET", "/healthz", {}))
    assert (await read_answer(reader)).status == 200


async def test_more_connections_than_it_may_have_are_refused(opening_http: OpenSite, connect: Connect) -> None:
    async with opening_http(max_connections=2) as site:
        kept = [await connect(site.port) for _ in range(2)]
        reader, writer = await connect(site.port)

        assert b" 503 " in await reader.read()
        writer.close()
        kept[0][1].close()
        await asyncio.sleep(0.05)
        assert (await site.call("GET", "/healthz")).status == 200
        kept[1][1].close()


async def test_the_end_of_an_answer_does_not_wait_for_the_peer(site: Site, connect: Connect) -> None:
    reader, writer = await connect(site.port)
    writer.write(head("GET", "/healthz", {}))
    await read_answer(reader)

    (connection,) = site.server._server.server_state.connections
    taken = connection.transport.get_extra_info("socket")
    assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_requests_in_a_row_without_waiting_are_answered_in_their_order(
    site: Site, connect: Connect, metrics: Metrics
) -> None:
    reader, writer = await connect(site.port)
    writer.write(b"".join(head("GET", "/v1/models", {"x-request-id": str(index)}) for index in range(100)))

    answers = [await read_answer(reader) for _ in range(100)]

    assert [answer.headers["x-request-id"] for answer in answers] == [str(index) for index in range(100)]
