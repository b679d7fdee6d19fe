"""Answers of a hostile server, which are a real server's bytes."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from babelserve import AsyncClient, Client
from babelserve.answers import _MOST_UNPACKED_BYTES, _SHORT_BYTES, BoundedChannel, answer
from babelserve.errors import InvalidRequest, ServerFailed
from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub

MEBIBYTE = 2**20


class Raw(grpc.GenericRpcHandler):  # type: ignore[type-arg] # it takes none when it runs
    """Answers every call with the same bytes, compressed if told so."""

    def __init__(self) -> None:
        self.data = b""
        self.compression = grpc.Compression.NoCompression

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        if "health" in details.method:
            return None
        if "Stream" in details.method or "Bulk" in details.method:
            return grpc.stream_stream_rpc_method_handler(lambda requests, context: iter([self._answer(context)]))
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self._answer(context))

    def _answer(self, context: grpc.ServicerContext) -> bytes:
        context.set_compression(self.compression)
        return self.data


@pytest.fixture
def raw() -> Iterator[tuple[Raw, str]]:
    """Says what a server answers, and where it is."""
    server, handler = grpc.server(ThreadPoolExecutor(4)), Raw()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler, f"127.0.0.1:{port}"
    server.stop(None).wait()


def field(number: int, content: bytes = b"") -> bytes:
    """A field with a length, as protobuf writes it; the number is below 16."""
    head = bytearray([number << 3 | 2])
    length = len(content)
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + content


# The number of bytes is enough for each to take too much.
HOSTILE = {
    "translations": (pb.TranslateResponse, field(1) * (16 * MEBIBYTE)),
    "sentences": (pb.TranslateResponse, field(1, field(5) * (4 * MEBIBYTE))),
    "tokens": (pb.TranslateResponse, field(1, field(5, field(14) * (4 * MEBIBYTE)))),
    "links": (pb.TranslateStreamResponse, field(5, field(9) * (4 * MEBIBYTE))),
    "models": (pb.ListModelsResponse, field(1) * (2 * MEBIBYTE)),
    "codes": (pb.ListModelsResponse, field(1, field(9) * (12 * MEBIBYTE))),
    "scores": (pb.ScoreResponse, field(1) * (5 * MEBIBYTE)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_would_take_gigabytes_is_refused(name: str) -> None:
    kind, data = HOSTILE[name]

    with pytest.raises(ServerFailed, match=rf"^the answer has {len(data)} bytes, and would take more than 768 MiB"):
        answer(read(kind, data))


def read(kind: Any, data: bytes) -> Any:
    """Reads bytes as a call of a bounded channel does."""

    class Calls:
        def unary_unary(self, method: str, response_deserializer: Callable[[bytes], Any]) -> Any:
            return response_deserializer(data)

    return BoundedChannel(Calls()).unary_unary("method", response_deserializer=kind.FromString)


def test_a_long_answer_that_is_none_of_these_is_read() -> None:
    token = pb.Token(text="word", begin=1000, end=1004, log_prob=-0.5)
    sentences = [pb.Sentence(text="x" * 500, tokens=[token] * 100, kept=[pb.KeptPart(text="y")])] * 2000
    message = pb.TranslateResponse(translations=[pb.Translation(text="\u00fc" * MEBIBYTE, sentences=sentences)])

    assert message.ByteSize() > 4 * _SHORT_BYTES
    assert read(pb.TranslateResponse, message.SerializeToString()) == message


@pytest.mark.parametrize("data", [field(1, b"\xff" * (2 * MEBIBYTE)), field(2, b"\xff" * (2 * MEBIBYTE))])
def test_a_long_answer_may_be_damaged_within(data: bytes) -> None:
    with pytest.raises(ServerFailed, match=rf"^the answer has {len(data)} bytes that are no TranslateResponse$"):
        answer(read(pb.TranslateResponse, data))


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"\xff" * (2 * MEBIBYTE),
        field(1, b"x" * (2 * MEBIBYTE))[:-1],
        b"\x0f" * (2 * MEBIBYTE),  # a kind of value that there is not
    ],
)
async def test_an_answer_that_is_no_message_is_a_failure_of_the_server(
    data: bytes, raw: tuple[Raw, str], caplog: pytest.LogCaptureFixture
) -> None:
    handler, address = raw
    handler.data = data
    expected = rf"^the answer has {len(data)} bytes that are no "

    with Client(address) as client, caplog.at_level(logging.DEBUG):
        with pytest.raises(ServerFailed, match=expected + "TranslateResponse$"):
            client.translate(["a"], target="de")
        with pytest.raises(ServerFailed, match=expected + "ListModelsResponse$"):
            client.list_models()
        with pytest.raises(ServerFailed, match=expected + "ScoreResponse$"):
            client.score([("a", "b")], target="de")
        with pytest.raises(ServerFailed, match=expected + "TranslateStreamResponse$"):
            list(client.translate_stream(["a"], target="de"))
        with pytest.raises(ServerFailed, match=expected + "TranslateBulkResponse$"):
            list(client.translate_bulk(["a"], target="de"))
    async with AsyncClient(address) as asynchronous:
        with pytest.raises(ServerFailed, match=expected + "TranslateResponse$"):
            await asynchronous.translate(["a"], target="de")
        with pytest.raises(ServerFailed, match=expected + "TranslateStreamResponse$"):
            async with contextlib.aclosing(asynchronous.translate_stream(["a"], target="de")) as stream:  # type: ignore[type-var]
                await anext(stream)
        with pytest.raises(ServerFailed, match=expected + "TranslateBulkResponse$"):
            async with contextlib.aclosing(asynchronous.translate_bulk(["a"], target="de")) as bulk:  # type: ignore[type-var]
                await anext(bulk)
    # The loop of an earlier test may report a late event of gRPC's poller, so the records of asyncio do not count.
    assert not [record for record in caplog.records if record.exc_info and record.name != "asyncio"]


@pytest.mark.parametrize("num_answers", [0, 2])
async def test_there_is_an_answer_for_each_text(num_answers: int, raw: tuple[Raw, str]) -> None:
    handler, address = raw
    handler.data = field(1) * num_answers
    expected = rf"^the server answered 1 texts with {num_answers} answers$"

    with Client(address) as client:
        with pytest.raises(ServerFailed, match=expected):
            client.translate(["a"], target="de")
        with pytest.raises(ServerFailed, match=expected):
            client.score([("a", "b")], target="de")
    async with AsyncClient(address) as asynchronous:
        with pytest.raises(ServerFailed, match=expected):
            await asynchronous.translate(["a"], target="de")
        with pytest.raises(ServerFailed, match=expected):
            await asynchronous.score([("a", "b")], target="de")


def test_a_sentence_of_a_stream_is_of_one_of_its_texts(raw: tuple[Raw, str]) -> None:
    handler, address = raw
    handler.data = pb.TranslateStreamResponse(content_index=1).SerializeToString()

    with Client(address) as client, pytest.raises(ServerFailed, match=r"^the server answered text 1 of 1$"):
        list(client.translate_stream(["a"], target="de"))


def test_what_gzip_makes_long_is_refused(raw: tuple[Raw, str]) -> None:
    handler, address = raw
    handler.data, handler.compression = field(2, b"x" * (65 * MEBIBYTE)), grpc.Compression.Gzip

    with Client(address) as client, pytest.raises(InvalidRequest, match="message larger than max"):
        client.translate(["a"], target="de")


def test_a_plain_stub_is_what_it_was(raw: tuple[Raw, str]) -> None:
    handler, address = raw
    handler.data = pb.ListModelsResponse(models=[pb.ModelInfo(name="m")]).SerializeToString()

    with grpc.insecure_channel(address) as channel:
        stub = TranslationServiceStub(BoundedChannel(channel))
        assert answer(stub.ListModels(pb.ListModelsRequest())).models[0].name == "m"


def test_the_limit_is_over_what_a_short_answer_can_take() -> None:
    assert _SHORT_BYTES // 2 * 500 < _MOST_UNPACKED_BYTES
