"""Bodies within limits, and what is in them."""

import asyncio
import gzip
import json
import time
from typing import Any

import pytest
from starlette.requests import Request

from server.errors import InvalidRequest, Overloaded
from server.fronts.front import BodyTooLong, BodyTooSlow
from server.translation.long_messages import LongMessages
from server.web.bodies import _UNPACKED_BYTES, MAX_BODY_BYTES, Bodies, read_fields, read_json, read_query
from tests.server.web.client import head, read_answer
from tests.server.web.conftest import Connect, Site

PARTS = (
    b'--x\r\ncontent-disposition: form-data; name="q"\r\n\r\na b\r\n'
    b'--x\r\ncontent-disposition: form-data; name="source"\r\n\r\nen\r\n--x--\r\n'
)


def coming(*chunks: bytes | None, content_type: str = "", query: str = "", length: int | None = None) -> Request:
    """A request whose body comes in chunks; None for a caller who leaves, and nothing more for one who waits."""
    headers = [(b"content-type", content_type.encode())]
    headers += [(b"content-length", str(length).encode())] if length is not None else []
    waiting = list(chunks)

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()
        chunk = waiting.pop(0)
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": chunk != b""}

    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": query.encode()}
    return Request(scope, receive)


class Waits(LongMessages):
    """Says what was asked of it. All wait until the wait is over."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.has_begun, self.is_over = asyncio.Event(), asyncio.Event()

    async def wait_to_parse(self, num_bytes: int) -> None:
        self.asked.append(num_bytes)
        self.has_begun.set()
        await self.is_over.wait()


async def test_a_body_is_read_to_its_end() -> None:
    assert await Bodies(LongMessages()).read(coming(b"ab", b"cd", b"")) == b"abcd"


async def test_of_a_caller_who_leaves_nothing_is_read() -> None:
    assert await Bodies(LongMessages()).read(coming(b"ab", None)) is None


@pytest.mark.parametrize("request_", [coming(b"", length=9), coming(b"12345", b"6789", b"")])
async def test_a_long_body_is_refused_by_its_length_or_as_soon_as_it_is(request_: Request) -> None:
    with pytest.raises(BodyTooLong, match="must have at most 8 bytes, not 9"):
        await Bodies(LongMessages()).read(request_, max_bytes=8)


async def test_a_slow_body_is_given_up() -> None:
    with pytest.raises(BodyTooSlow, match=r"within 0\.05 seconds"):
        await Bodies(LongMessages(), seconds=0.05).read(coming(b"a"))


async def test_all_bodies_that_are_being_read_have_a_limit_and_give_it_back() -> None:
    bodies = Bodies(LongMessages(), max_unread_bytes=8)
    slow = asyncio.create_task(bodies.read(coming(b"12345")))
    await asyncio.sleep(0)

    with pytest.raises(Overloaded):
        await bodies.read(coming(b"6789", b""))
    slow.cancel()
    await asyncio.wait({slow})

    assert await bodies.read(coming(b"6789", b"")) == b"6789"


@pytest.mark.parametrize(
    ("content_type", "max_bytes", "times"),
    [
        ("multipart/form-data; boundary=x", MAX_BODY_BYTES + 1, 1),
        ("multipart/form-data; boundary=x", MAX_BODY_BYTES, 8),
        ("application/json", MAX_BODY_BYTES + 1, 8),
    ],
)
async def test_a_form_with_a_file_keeps_others_waiting_for_less_long_than_json(
    content_type: str, max_bytes: int, times: int
) -> None:
    waits = Waits()
    waits.is_over.set()
    await Bodies(waits).read(coming(b"a" * 20_000, b"", content_type=content_type), max_bytes)

    assert waits.asked == [times * 20_000]


async def test_a_body_that_was_unpacked_waits_once_by_its_length_and_counts_meanwhile() -> None:
    waits = Waits()
    bodies = Bodies(waits, max_unread_bytes=900_000)
    packed = gzip.compress(b" " * 600_000)

    first = asyncio.create_task(bodies.unpack(packed, "gzip"))
    await waits.has_begun.wait()
    with pytest.raises(Overloaded):
        await bodies.unpack(packed, "gzip")
    waits.is_over.set()

    assert await first == await bodies.unpack(packed, "gzip") == b" " * 600_000
    assert waits.asked == [8 * 600_000] * 2


async def test_a_body_that_unpacks_to_too_much_is_refused_in_words_of_its_own() -> None:
    with pytest.raises(BodyTooLong, match="must have at most 8388608 bytes when it is unpacked"):
        await Bodies(LongMessages()).unpack(gzip.compress(bytes(MAX_BODY_BYTES + 1)), "gzip")


async def test_a_body_is_unpacked_while_the_event_loop_does_other_work() -> None:
    bodies, packed = Bodies(LongMessages()), gzip.compress(bytes(MAX_BODY_BYTES))
    unpacking = asyncio.create_task(bodies.unpack(packed, "gzip"))
    num_turns = 0

    while not unpacking.done():
        await asyncio.sleep(0)
        num_turns += 1

    assert num_turns > MAX_BODY_BYTES // _UNPACKED_BYTES


async def test_a_body_that_is_whole_in_time_is_not_slow_while_it_waits_for_others() -> None:
    waits = Waits()

    reading = asyncio.create_task(Bodies(waits, seconds=0.05).read(coming(b"a" * 20_000, b"")))
    await asyncio.wait({reading}, timeout=0.1)
    waits.is_over.set()

    assert await reading == b"a" * 20_000


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 15_000, b'{"a":' * 15_000, b"9" * 5000])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="body: must be JSON in UTF-8"):
        read_json(body)


def test_json_has_a_limit_of_values_but_not_of_text() -> None:
    assert read_json(json.dumps([[1] * 10_000, {"a": "b" * 100_000}]).encode())
    assert read_json(json.dumps(['[{,\\"' * 20_000]).encode()) == ['[{,\\"' * 20_000]
    values: list[Any] = [[""] * 20_001, [[]] * 20_001, dict.fromkeys(map(str, range(20_001))), [[[0] * 200] * 101]]
    for value in values:
        with pytest.raises(InvalidRequest, match="body: must have at most 20000 values"):
            read_json(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"q": "a b", "source": "en"}'),
        ("", b' {"q": "a b", "source": "en"}'),
        ("application/x-www-form-urlencoded", b"q=a+b&source=en"),
        ("", b"q=a%20b&source=en"),
        (
            "multipart/form-data; boundary=x",
            PARTS,
        ),
    ],
)
async def test_fields_come_as_json_or_a_form_and_those_of_the_query_beside(content_type: str, body: bytes) -> None:
    fields = await read_fields(coming(content_type=content_type, query="target=de&source=fr"), body)

    assert fields == {"q": ["a b"], "source": ["en"], "target": ["de"]}


async def test_a_field_of_a_form_may_have_many_values() -> None:
    assert await read_fields(coming(), b"q=a&q=&q=b") == {"q": ["a", "", "b"]}


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        ("application/json", b"[]", "must be a JSON object"),
        ("", b"q=%ff", "must be a form in UTF-8"),
        ("", b"q=\xff", "must be a form in UTF-8"),
        ("", b"q=&" * 5000, "must have at most 4096 fields"),
        ("multipart/form-data", b"", "must be a form of parts"),
        ("multipart/form-data; boundary=x", b"--x\r\nno header\r\n", "must be a form of parts"),
    ],
)
async def test_what_is_no_form_is_refused(content_type: str, body: bytes, words: str) -> None:
    with pytest.raises(InvalidRequest, match=f"body: {words}"):
        await read_fields(coming(content_type=content_type), body)


@pytest.mark.parametrize("piece", [b'"",', b"[],", b"{},", b'"\\u0041",', b"0,", b'\\"', b'"', b"\\", b'"\\', b'[,"\\'])
def test_json_of_any_kind_is_read_in_linear_time(piece: bytes) -> None:
    def seconds(num_bytes: int) -> float:
        body = b"[" + piece * (num_bytes // len(piece)) + b"0]"
        started = time.process_time()
        with pytest.raises(InvalidRequest):
            read_json(body)
        return time.process_time() - started

    quick, slow = (
        min(seconds(num_bytes) for _ in range(5)) for num_bytes in (MAX_BODY_BYTES // 16, MAX_BODY_BYTES // 2)
    )
    assert slow / quick < 24  # eight times as many bytes; sixty-four would be a square


async def test_over_a_socket_a_long_body_is_refused_unread_and_the_connection_closed(
    site: Site, connect: Connect
) -> None:
    reader, writer = await connect(site.port)
    writer.write(head("POST", "/v1/translate", {"content-length": str(MAX_BODY_BYTES + 1)}))

    answer = await read_answer(reader)

    assert (answer.status, answer.headers["connection"]) == (413, "close")
    assert await reader.read() == b""


async def test_slow_bodies_keep_nobody_waiting(site: Site, connect: Connect) -> None:
    slow = [await connect(site.port) for _ in range(50)]
    for _, writer in slow:
        writer.write(head("POST", "/v1/translate", {"content-length": "100"}) + b"{")

    answer = await site.call("POST", "/v1/translate", {"contents": ["A dog."], "targetLanguageCode": "de"})

    assert answer.status == 200
    for _, writer in slow:
        writer.close()


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (b"100% sure+%26+%zz", "100% sure & %zz"),
        (b"\\x41\\n%5C%41", "\\x41\\n\\A"),
        (b"%E4%BD%A0" * 100_000, "\u4f60" * 100_000),
        ("\u4f60".encode(), "\u4f60"),
    ],
    ids=["percent", "backslashes", "many", "plain"],
)
async def test_a_form_is_read_as_browsers_write_it(value: bytes, meant: str) -> None:
    assert await read_fields(coming(), b"&q=" + value + b"&&q=&n") == {"q": [meant, ""], "n": [""]}


@pytest.mark.parametrize("body", [b"q=" + b"%" * 1_000_000, (b"q=" + b"%" * 10_000 + b"&") * 100], ids=["one", "many"])
async def test_a_long_form_of_percents_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="two hexadecimal digits"):
        await read_fields(coming(), body)


def test_a_query_may_have_many_values() -> None:
    assert read_query({"query_string": b"to=de&to=fr&x="}) == {"to": ["de", "fr"], "x": [""]}
    with pytest.raises(InvalidRequest):
        read_query({"query_string": b"x=%FF"})
