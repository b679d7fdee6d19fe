"""What a connection may do before it has sent a request, over real sockets."""

import asyncio
import gc
import socket
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.telemetry.metrics import Metrics
from server.web import connection
from server.web.serving import HttpServer
from tests.server.echo_engine import EchoEngine
from tests.server.web.client import head, is_cut, read_answer
from tests.server.web.conftest import Connect, OpenSite, Site

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Asking = Callable[..., Awaitable[tuple[HttpServer, Pair]]]


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


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_head_and_body_are_written_at_once(
    site: Site, connect: Connect, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    reader, writer = await connect(site.port)
    writer.write(head("GET", "/healthz", {}))
    await read_answer(reader)
    (served,) = site.server._server.server_state.connections
    write, written = served.transport.write, list[bytes]()

    def noting(data: bytes) -> None:
        written.append(data)
        write(data)

    monkeypatch.setattr(served.transport, "write", noting)

    for _ in range(2):
        writer.write(head(method, "/healthz", {}))
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5.0)

    body = b'{"status":"ok"}' if method == "GET" else b""
    assert [data.partition(b"\r\n\r\n")[2] for data in written] == [body] * 2


@pytest_asyncio.fixture
async def asking(connect: Connect) -> AsyncIterator[Asking]:
    """Starts a server of an application; returns it, and a connection to it that has sent a request."""
    servers: list[HttpServer] = []

    async def ask(app: ASGIApp, method: str = "GET", **headers: str) -> tuple[HttpServer, Pair]:
        server = HttpServer(app, "127.0.0.1", 0, max_connections=1)
        servers.append(server)
        await server.start()
        reader, writer = await connect(server.port)
        writer.write(head(method, "/", headers))
        return server, (reader, writer)

    yield ask
    for server in servers:
        await server.stop()


START: Message = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]}
END: Message = {"type": "http.response.body", "body": b"abc"}


async def test_a_head_does_not_wait_for_a_body_that_comes_later(asking: Asking) -> None:
    has_head = asyncio.Event()

    async def answer(_: Scope, __: Receive, send: Send) -> None:
        await send(START)
        await has_head.wait()
        await send(END)

    _, (reader, _) = await asking(answer)
    await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5.0)
    has_head.set()
    assert await reader.readexactly(3) == b"abc"


async def test_a_body_that_fails_leaves_no_head(asking: Asking) -> None:
    async def answer(_: Scope, __: Receive, send: Send) -> None:
        await send(START)
        raise OSError

    _, (reader, _) = await asking(answer)

    assert await asyncio.wait_for(reader.read(), 5.0) == b""


async def test_the_answer_to_head_is_written_before_its_connection_closes(asking: Asking) -> None:
    async def answer(_: Scope, __: Receive, send: Send) -> None:
        await send(START)
        await send(END)
        (served,) = server._server.server_state.connections
        served.shutdown()

    server, (reader, _) = await asking(answer, "HEAD")

    assert (await asyncio.wait_for(reader.read(), 5.0)).startswith(b"HTTP/1.1 200 ")


async def test_a_body_that_waits_for_leave_gets_it(asking: Asking) -> None:
    async def answer(_: Scope, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        await send(START)
        await send({"type": "http.response.body", "body": body})

    _, (reader, writer) = await asking(answer, "POST", expect="100-continue", **{"content-length": "3"})
    assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5.0)).startswith(b"HTTP/1.1 100 ")
    writer.write(b"abc")
    assert (await read_answer(reader)).body == b"abc"


async def test_no_request_waits_for_the_garbage_collector(asking: Asking) -> None:
    async def answer(_: Scope, __: Receive, send: Send) -> None:
        await send(START)
        await send(END)

    server, (reader, writer) = await asking(answer)
    await read_answer(reader)
    (served,) = server._server.server_state.connections
    assert isinstance(served, connection.Connection)
    first = weakref.ref(served.cycle)
    gc.disable()
    try:
        writer.write(head("GET", "/", {}))
        await read_answer(reader)
        assert first() is None
    finally:
        gc.enable()


BODY = b'{"contents":["A dog runs."],"targetLanguageCode":"de"}'
REQUEST = head("POST", "/v1/translate", {"content-length": str(len(BODY))}) + BODY
BEGIN_CHUNKED = head("POST", "/v1/translate", {"transfer-encoding": "chunked"})


@pytest.mark.parametrize(
    "endless",
    [b"1\r\nx\r\n" * 5000, b"1;" + b"x" * 40_000, b"0\r\n" + b"x: y\r\n" * 6000, b"0\r\nx: " + b"y" * 40_000],
    ids=["chunks of a byte", "a chunk's extension", "trailers", "a trailer"],
)
async def test_who_sends_more_frame_than_body_is_refused(site: Site, connect: Connect, endless: bytes) -> None:
    reader, writer = await connect(site.port)
    writer.write(BEGIN_CHUNKED + endless)

    assert await asyncio.wait_for(is_cut(reader), 5.0)


async def test_a_body_in_small_chunks_is_read(site: Site, connect: Connect) -> None:
    body = BODY + b" " * 100_000
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(body[i : i + 64]), body[i : i + 64]) for i in range(0, len(body), 64))
    reader, writer = await connect(site.port)
    writer.write(BEGIN_CHUNKED + chunks + b"0\r\n\r\n")

    assert (await read_answer(reader)).status == 200


@pytest.mark.parametrize(
    "ahead",
    [head("GET", "/healthz", {}) * 500, (head("POST", "/v1/translate", {"content-length": "9000"}) + b" " * 9000) * 20],
    ids=["requests", "bodies"],
)
async def test_who_sends_too_much_ahead_is_put_out(
    site: Site, connect: Connect, engine: EchoEngine, ahead: bytes
) -> None:
    engine.is_holding = True
    reader, writer = await connect(site.port)
    writer.write(REQUEST + ahead)

    assert await asyncio.wait_for(is_cut(reader), 5.0)


async def test_work_ends_when_a_caller_who_sent_ahead_hangs_up(
    site: Site, connect: Connect, engine: EchoEngine
) -> None:
    engine.is_holding = True
    _, writer = await connect(site.port)
    writer.write(REQUEST * 3)
    await engine.submitted.wait()

    writer.close()
    await site.running.wait_until_idle()

    assert [future.cancelled() for future in engine.futures] == [True]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (head("GET", "/healthz", {})[:-2] + b"host: other\r\n\r\n", b"Host: must come once, not 2 times"),
        (head("GET", "/healthz", {f"x{index}": "y" for index in range(1000)}), b"at most 100 headers, not 1001"),
        (b"GET /healthz HTTP/2.0\r\nhost: a\r\n\r\n", b"version 1.0 or 1.1, not 2.0"),
        (BEGIN_CHUNKED[:-2] + b"content-length: 5\r\n\r\n0\r\n\r\n", b"Invalid HTTP request"),
        (head("GET", "/healthz", {"x": "a\r\n b"}), b"Invalid HTTP request"),
        (b"GET /healthz HTTP/1.1\nhost: a\n\n", b"Invalid HTTP request"),
        (BEGIN_CHUNKED + b"5\n12345\r\n0\r\n\r\n", b"Invalid HTTP request"),
    ],
    ids=[
        "two hosts",
        "1,000 headers",
        "HTTP/2.0",
        "chunks and a length",
        "a fold",
        "line feeds",
        "a line feed in a chunk",
    ],
)
async def test_a_head_that_others_may_read_otherwise_is_refused(
    site: Site, connect: Connect, data: bytes, words: bytes
) -> None:
    reader, writer = await connect(site.port)
    writer.write(data)

    answer = await asyncio.wait_for(reader.read(), 5.0)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert words in answer


async def test_a_refusal_does_not_pass_for_the_answer_to_the_request_before(
    site: Site, connect: Connect, engine: EchoEngine
) -> None:
    engine.is_holding = True
    reader, writer = await connect(site.port)
    writer.write(REQUEST)
    await engine.submitted.wait()
    writer.write(b"no HTTP\r\n\r\n")

    assert await asyncio.wait_for(is_cut(reader), 5.0)


async def test_fields_behind_a_body_are_no_headers(site: Site, connect: Connect) -> None:
    reader, writer = await connect(site.port)
    writer.write(BEGIN_CHUNKED + b"%x\r\n%b\r\n0\r\nx-request-id: behind\r\n\r\n" % (len(BODY), BODY))

    answer = await read_answer(reader)
    assert answer.status == 200
    assert answer.headers["x-request-id"] != "behind"


@pytest.mark.parametrize("num_held", [1, 2, 3])
async def test_a_body_that_looks_like_a_wish_for_another_protocol_stays_as_it_is(
    site: Site, connect: Connect, num_held: int
) -> None:
    smuggled = head("GET", "/v1/models", {})
    body = BODY.ljust(4000) + b"\nupgrade: a" * (len(smuggled) // 2) + smuggled
    request = head("POST", "/v1/glossaries", {"content-length": str(len(body))})
    reader, writer = await connect(site.port)
    writer.write(request[:-num_held])
    await asyncio.sleep(0.1)  # until the server has parsed so much of the head
    writer.write(request[-num_held:] + body + head("GET", "/nowhere", {}))

    assert [(await read_answer(reader)).status for _ in range(2)] == [405, 404]


async def test_the_rest_of_a_body_that_is_answered_must_come(
    site: Site, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_HEAD_SECONDS", 0.3)
    reader, writer = await connect(site.port)
    writer.write(head("POST", "/nowhere", {"content-length": "5"}) + b"1234")
    assert (await read_answer(reader)).status == 404
    writer.write(b"5" + head("GET", "/healthz", {}))
    assert (await read_answer(reader)).status == 200

    writer.write(head("POST", "/nowhere", {"content-length": "5"}) + b"1234")
    assert (await read_answer(reader)).status == 404
    assert await asyncio.wait_for(is_cut(reader), 5.0)


async def test_where_requests_are_not_welcome_each_answer_closes_its_connection(site: Site, connect: Connect) -> None:
    reader, writer = await connect(site.port)
    writer.write(head("GET", "/healthz", {}))
    assert "connection" not in (await read_answer(reader)).headers

    site.running.refuse()
    writer.write(head("GET", "/healthz", {}))

    assert (await read_answer(reader)).headers["connection"] == "close"
    assert await is_cut(reader)


UPGRADE = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAEAAEAAAAIAAAABAAMAAABk"}


async def test_a_request_that_asks_for_another_protocol_is_answered_in_this_one(site: Site, connect: Connect) -> None:
    reader, writer = await connect(site.port)
    for _ in range(2):
        writer.write(head("POST", "/v1/translate", {"content-length": str(len(BODY)), **UPGRADE}) + BODY)

        assert (await asyncio.wait_for(read_answer(reader), 5.0)).status == 200


@pytest.mark.parametrize(
    "pieces", [b"\r\n|upgrade: h2c", b"\r\nup|grade: h2c", b"\r\nu|p|g|r|a|d|e|:| h2c", b"\r\nupgrade|:"]
)
async def test_a_wish_for_another_protocol_may_come_in_pieces(site: Site, connect: Connect, pieces: bytes) -> None:
    request = head("POST", "/v1/translate", {"content-length": str(len(BODY)), **UPGRADE}) + BODY
    before, behind = request.split(pieces.replace(b"|", b""))
    reader, writer = await connect(site.port)
    for _ in range(2):
        for piece in (before + pieces + behind).split(b"|"):
            writer.write(piece)
            await asyncio.sleep(0.02)  # until the server has parsed it

        assert (await asyncio.wait_for(read_answer(reader), 5.0)).status == 200
