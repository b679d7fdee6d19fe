"""The least client of HTTP: one request on a connection of its own, or bytes as they are wanted."""

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def call(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    context: ssl.SSLContext | None = None,
) -> Answer:
    """Sends one request and returns its answer; a body that is no bytes goes as JSON."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("localhost" if context else "127.0.0.1", port, ssl=context)
    try:
        own = {"content-length": str(len(data)), "connection": "close"}
        writer.write(head(method, path, own | dict(headers or {})) + data)
        return await read_answer(reader)
    finally:
        writer.close()


def head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in ({"host": "test"} | dict(headers)).items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Reads an answer with a length, or in chunks."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int((await reader.readline()), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Answer(int(first.split()[1]), headers, body)


async def is_cut(reader: asyncio.StreamReader) -> bool:
    """Whether the connection ends without an answer."""
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True
