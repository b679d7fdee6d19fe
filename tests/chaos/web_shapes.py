"""Requests over HTTP that no honest client sends, and what may be answered: a status, or `None` for an end without."""

import json
from collections.abc import Iterator
from typing import NamedTuple

HOST = "host: test\r\n"
GOOD = b'{"contents": ["A dog runs."], "targetLanguageCode": "de"}'
_CLIENT_ERRORS = frozenset({400, 404, 405, 408, 413, 415, 429, 431, None})
_FORM = "content-type: application/x-www-form-urlencoded\r\n"
_PARTS = "content-type: multipart/form-data; boundary=b\r\n"
_PART = b'--b\r\ncontent-disposition: form-data; name="%b"\r\n\r\n%b\r\n'


class Shape(NamedTuple):
    """One request.

    Attributes:
        statuses: one of these must be answered; None for a connection that ends.
    """

    name: str
    data: bytes
    statuses: frozenset[int | None] = _CLIENT_ERRORS


def post(path: str, body: bytes, headers: str = "", *, length: str | None = None) -> bytes:
    """Returns a request with a body; `length` is what it claims, its own unless given."""
    claimed = f"content-length: {len(body) if length is None else length}\r\n"
    return f"POST {path} HTTP/1.1\r\n{HOST}{claimed}{headers}\r\n".encode() + body


def shapes() -> Iterator[Shape]:
    """Yields all shapes."""
    yield from _heads()
    yield from _framings()
    for path in ("/v1/translate", "/v1/translate/stream", "/v1/score", "/v1/detect", "/translate", "/detect"):
        for name, body in _values():
            more = {200} if "numbers" in name else set()  # some are in range, or of no meaning to this path
            yield Shape(
                f"{path}: {name}", post(path, body, "content-type: application/json\r\n"), _CLIENT_ERRORS | more
            )
    for path in ("/translate", "/libretranslate/detect"):
        for name, headers, body in _forms():
            yield Shape(f"{path}: {name}", post(path, body, headers))


def _heads() -> Iterator[Shape]:
    ok = frozenset({200})
    for path in (
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/v1/..%2fmodels",
        "/v1/models%00",
        "//evil.example/",
    ):
        yield Shape(f"path {path}", f"GET {path} HTTP/1.1\r\n{HOST}\r\n".encode())
    yield Shape("path of bytes", b"GET /\xff\xfe HTTP/1.1\r\nhost: a\r\n\r\n")
    yield Shape("path of 15 KiB", b"GET /" + b"a" * 15_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n")
    yield Shape("head of 300 KiB", b"GET /v1/models HTTP/1.1\r\n" + b"a: b\r\n" * 50_000 + b"\r\n")
    yield Shape("header of 300 KiB", b"GET /v1/models HTTP/1.1\r\na: " + b"a" * 300_000 + b"\r\n\r\n")
    yield Shape("query of fields", b"GET /languages?" + b"a&" * 7000 + b" HTTP/1.1\r\nhost: a\r\n\r\n")
    yield Shape("HTTP/1.0", b"GET /healthz HTTP/1.0\r\n\r\n", ok)
    yield Shape("HTTP/2 without asking", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    yield Shape("HTTP/9.9", b"GET /healthz HTTP/9.9\r\n\r\n")
    yield Shape("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500))
    yield Shape("no HTTP", b"\x00" * 500)
    yield Shape("another host", b"GET /healthz HTTP/1.1\r\nhost: evil.example\r\n\r\n", ok)
    yield Shape("slash after a path, another host", b"POST /v1/translate/ HTTP/1.1\r\nhost: evil.example\r\n\r\n")
    yield Shape("line break in a header", b"GET /healthz HTTP/1.1\r\nx-request-id: a\rb\r\n\r\n")
    yield Shape("HTTP/0.9", b"GET /healthz\r\n\r\n")
    yield Shape("no host", b"GET /healthz HTTP/1.1\r\n\r\n")
    yield Shape("two hosts", b"GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")
    yield Shape("1,000 headers", b"GET /healthz HTTP/1.1\r\nhost: a\r\n" + b"a: b\r\n" * 1000 + b"\r\n")
    yield Shape("bare line feeds", b"GET /healthz HTTP/1.1\nhost: a\n\n")
    yield Shape("folded header", b"GET /healthz HTTP/1.1\r\nhost: a\r\n b\r\n\r\n")
    yield Shape("space before the colon", b"POST /v1/translate HTTP/1.1\r\ncontent-length : 5\r\n\r\n12345")
    for method in ("TRACE", "OPTIONS", "PUT", "DELETE", "PROPFIND", "BREW"):
        yield Shape(method, f"{method} /v1/translate HTTP/1.1\r\n{HOST}\r\n".encode())
    yield Shape("CONNECT", b"CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example\r\n\r\n")
    yield Shape("absolute", b"GET http://evil.example HTTP/1.1\r\nhost: evil.example\r\n\r\n")
    yield Shape("OPTIONS *", b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n")
    for timeout in ("nan", "-1", "9" * 300, ""):
        yield Shape(f"a time of {timeout[:9]!r}", post("/v1/translate", GOOD, f"x-request-timeout: {timeout}\r\n"))
    odd = "authorization: Bearer \xff\xfe\r\nx-request-id: \xff\r\ntraceparent: 00-zz-zz-01\r\n"
    yield Shape("odd headers", post("/v1/translate", GOOD, odd), ok | {401})


def _framings() -> Iterator[Shape]:
    """Yields what a balancer may read as one request and the server as two."""
    path, smuggled = "/v1/translate", b"GET /admin HTTP/1.1\r\nhost: a\r\n\r\n"
    chunked = "transfer-encoding: chunked\r\n"
    yield Shape("length and chunks", post(path, b"0\r\n\r\n" + smuggled, chunked))
    yield Shape("two lengths", post(path, GOOD + smuggled, f"content-length: {len(GOOD) + len(smuggled)}\r\n"))
    for length in ("-1", "+5", "0x5", "1e3", "5, 5", "9" * 40, "1" * 5000, "", "\u0665"):
        yield Shape(f"a length of {length[:9]!r}", post(path, GOOD, length=length))
    for coding in (
        "chunked, identity",
        "xchunked",
        "identity",
        "gzip",
        "gzip, chunked",
        "chunked\r\ntransfer-encoding: x",
        "\x0bchunked",
    ):
        head = f"POST {path} HTTP/1.1\r\n{HOST}transfer-encoding: {coding}\r\n\r\n"
        yield Shape(f"coding {coding!r}", head.encode() + b"0\r\n\r\n")
    begin = f"POST {path} HTTP/1.1\r\n{HOST}{chunked}\r\n".encode()
    for size in (b"f" * 17, b"-1", b"0x10", b"", b"10000000000", b"zz"):
        yield Shape(f"a chunk of {size!r}", begin + size + b"\r\n" + GOOD + b"\r\n0\r\n\r\n")
    yield Shape("chunks in HTTP/1.0", begin.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n")
    yield Shape("a line feed in a chunk", begin + b"5\n12345\r\n0\r\n\r\n")
    yield Shape("chunks of a byte", begin + b"1\r\n \r\n" * 200_000)
    yield Shape("a chunk's extension", begin + b"1;" + b"x" * 300_000)
    yield Shape("trailers", begin + b"0\r\n" + b"x: y\r\n" * 50_000)
    yield Shape("a length above the limit", post(path, b"", length=str(1 << 40)))
    yield Shape("compressed", post(path, bytes(100), "content-encoding: gzip\r\n"))


def _values() -> Iterator[tuple[str, bytes]]:
    """Yields bodies that mean nothing, as JSON or not."""
    yield "nothing", b""
    yield "20,000 lists in each other", b'{"a":' + b"[" * 9_999 + b"]" * 9_999 + b"}"
    yield "a list that never ends", b"[" * 20_000
    yield "too many values", b'{"q": [' + b"1," * 50_000 + b"1]}"
    yield "a number of 1 MiB", b'{"contents": ' + b"9" * (1 << 20) + b"}"
    yield "a fraction of 1 MiB", b'{"contents": 0.' + b"9" * (1 << 20) + b"}"
    yield "bytes", b'{"contents": ["\xff\xfe"], "targetLanguageCode": "de"}'
    yield "UTF-16", GOOD.decode().encode("utf-16")
    yield "NUL", b"\0" * 100
    yield "an open string", b'{"contents": ["' + b"\\" * 100_000
    fields = (
        "contents",
        "q",
        "targetLanguageCode",
        "sourceLanguageCode",
        "source",
        "target",
        "pairs",
        "api_key",
        "format",
    )
    odd = ("1e999", "-1", "NaN", "null", "true", "{}", "[]", "[[]]", '"\\ud800"', '["\\udfff"]', "9" * 400, '{"a": 1}')
    for value in odd:
        yield f"fields that are {value[:9]}", ("{" + ", ".join(f'"{each}": {value}' for each in fields) + "}").encode()
    for value in (*odd[:3], '"' + "9" * 5000 + '"', "1e300"):
        more = f'"decoding": {{"beamSize": {value}, "lengthPenalty": {value}}}, "alternatives": {value}, "q": ["x"]'
        yield f"numbers that are {value[:9]}", f'{{"contents": ["x"], "source": "en", "target": "de", {more}}}'.encode()
    yield "the same field twice", b'{"contents": ["a"], "contents": 1, "q": "a", "q": {}}'
    yield "halves of pairs", b'{"contents": ["\\ud800"], "q": "\\udc00", "source": "en", "target": "de"}'
    yield "long names", json.dumps({"a" * 100_000: 1}).encode()


def _forms() -> Iterator[tuple[str, str, bytes]]:
    yield "100,000 fields", _FORM, b"q=a&" * 100_000
    yield "percents", _FORM, b"q=" + b"%" * (1 << 20)
    yield "bytes", _FORM, b"q=%ff%fe&source=%00"
    yield "100,000 parts", _PARTS, _PART % (b"q", b"a") * 100_000
    yield "no closing boundary", _PARTS, (_PART % (b"q", b"a"))[:-2] + b"a" * 100_000
    yield "no boundary", "content-type: multipart/form-data\r\n", b"a" * 1000
    yield "a long boundary", f"content-type: multipart/form-data; boundary={'b' * 5000}\r\n", b"--b"
    yield "boundaries only", _PARTS, b"--b\r\n" * 100_000
    yield "a header of a part that never ends", _PARTS, b"--b\r\na: " + b"a" * (1 << 20)
    for name, tail in (("blanks behind", b" "), ("letters behind", b"X\r\n--b"), ("a hyphen behind", b"-\r\n--b")):
        yield f"{name} boundaries", _PARTS, _PART % (b"x", b"a") + b"--b" + tail * ((1 << 20) // len(tail))
    for name, head in (
        ("semicolons", b";" * 4000),
        ("parameters", b";a=b" * 1000),
        ("blanks", b"\r\na:" + b" " * 4000),
    ):
        yield f"heads of {name}", _PARTS, (_PART.replace(b'"%b"', b"x" + head) % b"a") * 250 + b"--b--"
    yield (
        "a file for a text",
        _PARTS,
        _PART.replace(b'name="%b"', b'name="%b"; filename="../x"') % (b"q", b"a") + b"--b--",
    )
    yield "bytes in a name", _PARTS, _PART % (b"\xff", b"\xff") + b"--b--"
