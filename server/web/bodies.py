"""Reads the bodies of requests, within limits, and what is in them: JSON or a form.

A body that nobody reads takes no more memory than a buffer of its connection, because uvicorn stops reading then.
"""

import asyncio
import codecs
import contextlib
import json
import zlib
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.types import Receive, Scope

from server.errors import InvalidRequest, Overloaded
from server.fronts.front import BodyTooLong, BodyTooSlow
from server.translation.long_messages import LIGHT_BYTES, LongMessages
from server.web.parts import MAX_FIELDS, read_parts

MAX_BODY_BYTES = 8 << 20  # twice a message of gRPC, because JSON escapes
_MAX_UNREAD_BYTES = 64 << 20  # of all bodies that are being read. Half, and eight long bodies at once fill it. Twice,
# and slow senders keep as much memory as a small model.
_SECONDS = (
    20.0  # for a body to become whole. Half, and 8 MiB need over 6 Mbit/s. Twice, and slow senders stay for longer.
)
_PARSING = 8  # times what a byte of gRPC's messages takes: the worst JSON takes 60 ms a MiB, long texts 20. Half, and a
# flood of such bodies keeps half of the loop's time. Twice, and long bodies wait twice as long for each other.
_UNPACKED_BYTES = 256 << 10  # that are unpacked before they count. Half, and the event loop is asked twice as often.
# Twice, and bodies that are refused take twice as much of the lanes' cores before that.
_LINGER_SECONDS = 2.0  # for which the rest of a refused body is thrown away. Half, and slow callers, who read when they
# have sent all, see their connection break, not why. Twice, and refused ones keep their places for longer.
_MAX_VALUES = 20_000  # of JSON. Half, and a glossary of 1000 terms with all forms is refused. Twice, and reading
# our own messages keeps the event loop for 0.1 s.
_MAX_QUOTES = 4 * (_MAX_VALUES + 1)  # a value of an object has a name, too

_FORM = "multipart/form-data"


class Bodies:
    """Reads bodies, on the event loop's thread.

    Args:
        long_messages: says when a long one may be parsed.
        seconds: the time within which a body must be whole.
        max_unread_bytes: of all bodies that are being read.
    """

    def __init__(
        self,
        long_messages: LongMessages,
        seconds: float = _SECONDS,
        max_unread_bytes: int = _MAX_UNREAD_BYTES,
    ) -> None:
        self._long_messages = long_messages
        self._seconds = seconds
        self._max_unread_bytes = max_unread_bytes
        self._unread_bytes = 0

    async def read(self, request: Request, max_bytes: int = MAX_BODY_BYTES) -> bytes | None:
        """Returns the body when it is whole and may be parsed; None if the caller has left.

        Args:
            request: whose body was not read yet.
            max_bytes: of the body.

        Raises:
            BodyTooLong: it has too many bytes.
            BodyTooSlow: it was not whole in time.
            Overloaded: too many bodies are being read.
        """
        _check_length(int(request.headers.get("content-length", 0)), max_bytes)
        body = bytearray()
        try:
            if not await self._receive(request, body, max_bytes):
                return None
            # A route that takes files parses a body of parts as a form, never as JSON, and a file costs far less.
            is_file = max_bytes > MAX_BODY_BYTES and _kind(request) == _FORM
            await self._wait_to_parse(len(body), 1 if is_file else _PARSING)
        finally:
            self._unread_bytes -= len(body)
        return bytes(body)

    async def unpack(self, body: bytes, encoding: str) -> bytes:
        """Returns a body without its compression, when it may be parsed. Another thread unpacks it.

        Args:
            body: as it came.
            encoding: its `Content-Encoding`: gzip, deflate or none.

        Raises:
            BodyTooLong: it has too many bytes when it is unpacked.
            InvalidRequest: it is not so compressed, or in another way.
            Overloaded: too many bodies wait to be parsed.
        """
        kind = encoding.strip().lower()
        if kind in ("", "identity"):
            return body
        if kind not in ("gzip", "deflate"):
            raise InvalidRequest("Content-Encoding", "must be gzip or deflate")
        unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # finds out which of the two it is
        whole = bytearray()
        try:
            while body and not unpacking.eof:
                chunk = await asyncio.to_thread(unpacking.decompress, body, _UNPACKED_BYTES)
                if len(whole) + len(chunk) > MAX_BODY_BYTES:
                    raise BodyTooLong("body", f"must have at most {MAX_BODY_BYTES} bytes when it is unpacked")
                self._count(len(chunk))
                whole += chunk
                body = unpacking.unconsumed_tail
            if not unpacking.eof or unpacking.unused_data:
                raise InvalidRequest("body", f"must be compressed as {kind}, and whole")
            await self._wait_to_parse(len(whole))
        except zlib.error:
            raise InvalidRequest("body", f"must be compressed as {kind}") from None
        finally:
            self._unread_bytes -= len(whole)
        return bytes(whole)

    async def discard(self, receive: Receive) -> None:
        """Throws away the rest of a body for a moment, so that the caller comes to read its answer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while (await receive()).get("more_body", False):
                    pass

    async def _receive(self, request: Request, body: bytearray, max_bytes: int) -> bool:
        """Adds to a body all that comes of it. Returns whether it is whole; it is not if the caller has left."""
        try:
            async with asyncio.timeout(self._seconds):
                has_more = True
                while has_more:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        return False
                    self._take(body, message.get("body", b""), max_bytes)
                    has_more = message.get("more_body", False)
        except TimeoutError:
            raise BodyTooSlow("body", f"must be whole within {self._seconds:g} seconds") from None
        return True

    def _take(self, body: bytearray, chunk: bytes, max_bytes: int) -> None:
        _check_length(len(body) + len(chunk), max_bytes)
        self._count(len(chunk))
        body += chunk

    async def _wait_to_parse(self, num_bytes: int, times: int = _PARSING) -> None:
        if num_bytes > LIGHT_BYTES:
            await self._long_messages.wait_to_parse(times * num_bytes)

    def _count(self, num_bytes: int) -> None:
        if self._unread_bytes + num_bytes > self._max_unread_bytes:
            raise Overloaded(f"bodies that are being read hold {self._max_unread_bytes >> 20} MiB", "memory")
        self._unread_bytes += num_bytes


def _check_length(num_bytes: int, max_bytes: int) -> None:
    if num_bytes > max_bytes:
        raise BodyTooLong("body", f"must have at most {max_bytes} bytes, not {num_bytes}")


def read_json(body: bytes) -> Any:
    """Returns the JSON value that a body is.

    Raises:
        InvalidRequest: it is none, or has too many values.
    """
    if _num_values(body) > _MAX_VALUES:
        raise InvalidRequest("body", f"must have at most {_MAX_VALUES} values")
    try:
        return json.loads(body.decode())
    except (ValueError, RecursionError):
        raise InvalidRequest("body", "must be JSON in UTF-8") from None


def _num_values(body: bytes) -> int:
    """Returns how many values JSON has, at most; those of 8 MiB of empty lists would take 200 MiB."""
    num_values = _count(body)
    if num_values <= _MAX_VALUES:
        return num_values
    parts = body.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"', _MAX_QUOTES)
    if len(parts) > _MAX_QUOTES:
        return _MAX_VALUES + 1
    return sum(map(_count, parts[::2]))  # every other part stands in a string


def _count(body: bytes) -> int:
    return sum(map(body.count, (b"[", b"{", b",")))


async def read_fields(request: Request, body: bytes) -> dict[str, list[Any]]:
    """Returns the fields of a request, each with its values: of a JSON object or a form, else of the query.

    The body decides by what it looks like, because many clients send no type or a wrong one.

    Raises:
        InvalidRequest: the body is none of these, or has too many fields.
    """
    kind = _kind(request)
    fields = _pairs(request.scope["query_string"])
    if kind == _FORM:
        return fields | await read_parts(request, body, MAX_BODY_BYTES)
    if (kind == "application/json" and body) or body.lstrip()[:1] == b"{":  # some clients send the type without a body
        value = read_json(body)
        if not isinstance(value, dict):
            raise InvalidRequest("body", "must be a JSON object")
        return fields | {name: [each] for name, each in value.items()}
    return fields | _pairs(body)


def read_query(scope: Scope) -> dict[str, list[Any]]:
    """Returns the parameters of a request's query, each with its values. Raises InvalidRequest."""
    return _pairs(scope["query_string"])


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _pairs(encoded: bytes) -> dict[str, list[Any]]:
    """Returns the fields of a query or a form."""
    if encoded.count(b"&") >= MAX_FIELDS:
        raise InvalidRequest("body", f"must have at most {MAX_FIELDS} fields")
    may_err = encoded.count(b"%") <= _MAX_VALUES
    fields: dict[str, list[Any]] = {}
    try:
        for pair in filter(None, encoded.split(b"&")):
            name, _, value = pair.partition(b"=")
            fields.setdefault(_unquoted(name, may_err), []).append(_unquoted(value, may_err))
    except UnicodeError:
        raise InvalidRequest("body", "must be a form in UTF-8") from None
    return fields


def _unquoted(word: bytes, may_err: bool) -> str:
    """Returns a name or a value of a form.

    The standard library's function takes 8 s and 1 GiB for 8 MiB of `%`. Python's own escapes are read by C.

    Args:
        word: as it came.
        may_err: whether a "%" may begin no escape, such as people type.
    """
    word = word.replace(b"+", b" ")
    if b"%" in word:
        try:
            word, _ = codecs.escape_decode(word.replace(b"\\", b"\\\\").replace(b"%", b"\\x"))
        except ValueError:
            if not may_err:
                raise InvalidRequest("body", 'must have "%" only before two hexadecimal digits') from None
            word = unquote_to_bytes(word)
    return word.decode()
