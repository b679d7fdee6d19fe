"""What hostile callers over HTTP do, each from a process of its own: `ATTACKS` holds the names and functions."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass

from tests.chaos.web_shapes import GOOD, HOST, post, shapes

MOST_SLOW = 400  # connections that send slowly: each of their bytes costs the attacker's processor, too
_CHUNK_BYTES = 64 << 10  # as most clients have
_NICENESS = 19  # an attacker has a machine of its own
_REQUEST = post("/v1/translate", GOOD)
_MANY = b'{"contents": [' + b",".join([b'"A dog runs. A man sits."'] * 200) + b'], "targetLanguageCode": "de"}'
_BOMBS = ("number of 1 MiB", "percents", "100,000 parts", "chunks of a byte", "trailers", "fields that are 1e999")


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to attack, with how many connections, and for how many seconds."""

    host: str
    port: int
    connections: int
    seconds: float


def attack(name: str, target: Target) -> None:
    """Runs one attack until its time is over. The process ends then by SIGALRM, whatever its tasks wait for."""
    os.nice(_NICENESS)
    signal.setitimer(signal.ITIMER_REAL, target.seconds)
    asyncio.run(ATTACKS[name](target))


async def _idle(target: Target) -> None:
    """Connections that have had an answer and now say nothing."""
    await _all(target, lambda _: _asks_once(target, b"GET /healthz HTTP/1.1\r\n" + HOST.encode() + b"\r\n"))


async def _slow(target: Target) -> None:
    """Heads, bodies and chunks that come byte by byte, and never end."""
    begins = (
        b"GET /healthz HTTP/1.1\r\nx: ",
        post("/v1/translate", b"", length="1000000"),
        post("/translate", b"", "content-type: multipart/form-data; boundary=b\r\n", length="1000000"),
        f"POST /v1/translate HTTP/1.1\r\n{HOST}transfer-encoding: chunked\r\n\r\n".encode(),
    )

    async def drip(index: int) -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(target.host, target.port)
                writer.write(begins[index % len(begins)])
                while not reader.at_eof():
                    await asyncio.sleep(0.5)
                    writer.write(b"1")
                    await writer.drain()
            await asyncio.sleep(0.1)

    await _all(target, drip, most=MOST_SLOW)


async def _endless(target: Target) -> None:
    """Bodies of 8 MiB as fast as they are taken: every other one in chunks, so that its length is not known."""
    body = b'{"contents": ["' + b"a" * ((8 << 20) - 100) + b'"], "targetLanguageCode": "de"}'
    parts = [body[begin : begin + _CHUNK_BYTES] for begin in range(0, len(body), _CHUNK_BYTES)]
    in_chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])
    chunked = f"POST /v1/translate HTTP/1.1\r\n{HOST}transfer-encoding: chunked\r\n\r\n".encode()
    requests = [post("/v1/translate", body), chunked + in_chunks]
    await _all(target, lambda _: _again(target, requests, pause=0.2), most=16)


async def _bombs(target: Target) -> None:
    """Short and long requests that mean nothing."""
    chosen = [shape.data for shape in shapes() if any(word in shape.name for word in _BOMBS)]
    await _all(target, lambda _: _again(target, chosen, pause=0.1), most=8)


async def _ahead(target: Target) -> None:
    """Requests in a row, of which no answer is waited for."""
    await _all(target, lambda _: _again(target, [_REQUEST * 100, _REQUEST * 5000], pause=0.2, reads=False), most=8)


async def _hang_ups(target: Target) -> None:
    """Callers who leave at any moment, with and without a word."""

    async def leave(index: int) -> None:
        chance = random.Random(index)
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(target.host, target.port)
                writer.write(_REQUEST[: chance.randrange(len(_REQUEST) + 1)] if chance.random() < 0.5 else _REQUEST)
                await asyncio.sleep(chance.uniform(0.0, 0.2))
                writer.transport.abort() if chance.random() < 0.5 else writer.close()
            await asyncio.sleep(0.05)

    await _all(target, leave, most=16)


async def _unread(target: Target) -> None:
    """Long answers and streams that nobody reads."""

    async def ask(index: int) -> None:
        own = socket.socket()
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.setblocking(False)
        loop = asyncio.get_running_loop()
        with contextlib.closing(own):
            await loop.sock_connect(own, (target.host, target.port))
            path = "/v1/translate/stream" if index % 2 else "/v1/translate"
            await loop.sock_sendall(own, post(path, _MANY))
            await asyncio.sleep(target.seconds)

    await _all(target, ask, most=10)


async def _asks_once(target: Target, request: bytes) -> None:
    reader, writer = await asyncio.open_connection(target.host, target.port)
    writer.write(request)
    await reader.read(1)
    await asyncio.sleep(target.seconds)


async def _again(target: Target, requests: list[bytes], pause: float, *, reads: bool = True) -> None:
    turn = 0
    while True:
        turn += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(target.host, target.port)
            try:
                writer.write(requests[turn % len(requests)])
                await writer.drain()
                if reads:
                    await asyncio.wait_for(reader.read(1 << 16), 5.0)
                else:
                    await asyncio.sleep(pause)
            finally:
                writer.transport.abort()
        await asyncio.sleep(pause)


async def _all(target: Target, act: Callable[[int], Awaitable[None]], most: int = 100_000) -> None:
    """Runs so many of one kind, at most as many as the target has connections for."""
    acts: Iterable[Awaitable[None]] = [act(index) for index in range(min(target.connections, most))]
    await asyncio.gather(*acts, return_exceptions=True)


ATTACKS: dict[str, Callable[[Target], Coroutine[None, None, None]]] = {
    "idle connections": _idle,
    "slow heads and bodies": _slow,
    "bodies of 8 MiB": _endless,
    "bombs": _bombs,
    "requests ahead": _ahead,
    "hang-ups": _hang_ups,
    "unread answers": _unread,
}


async def tried(host: str, port: int, data: bytes, seconds: float = 30.0) -> int | None:
    """Sends bytes as they are; returns the answer's status, None if the connection ended or fell silent instead."""
    reader, writer = await asyncio.open_connection(host, port)
    sending = asyncio.create_task(_sent(writer, data))
    deadline = time.monotonic() + seconds
    try:
        line = await asyncio.wait_for(reader.readline(), deadline - time.monotonic())
        return int(line.split()[1]) if line else None
    except (OSError, TimeoutError):
        return None
    finally:
        sending.cancel()
        writer.transport.abort()


async def _sent(writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError):
        writer.write(data)
        await writer.drain()
