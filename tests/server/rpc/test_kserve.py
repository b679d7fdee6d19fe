"""KServe's service behind a real gRPC server; the engine echoes."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from server.errors import EngineFailed, Overloaded
from server.fronts.v1 import kserve_pb2 as kserve
from server.telemetry.metrics import Metrics
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import SECONDS, OpenPublic, Public, failure, told

SERVICE = "/inference.GRPCInferenceService"
Request = kserve.ModelInferRequest


def asked(*texts: str, identity: str = "", timeout: int = 0) -> kserve.ModelInferRequest:
    tensor = Request.InferInputTensor(
        name="text",
        datatype="BYTES",
        shape=[len(texts)],
        contents=kserve.InferTensorContents(bytes_contents=[text.encode() for text in texts]),
    )
    parameters = {"timeout": kserve.InferParameter(int64_param=timeout)} if timeout else {}
    return Request(model_name="echo", id=identity, inputs=[tensor], parameters=parameters)


def stream(public: Public, requests: Any) -> Any:
    channel: Any = public.channel
    return channel.stream_stream(
        f"{SERVICE}/ModelStreamInfer", response_deserializer=kserve.ModelStreamInferResponse.FromString
    )(requests, timeout=SECONDS)


async def responses(public: Public, *requests: kserve.ModelInferRequest) -> list[kserve.ModelStreamInferResponse]:
    async def sent() -> AsyncIterator[bytes]:
        for each in requests:
            yield each.SerializeToString()

    return [response async for response in stream(public, sent())]


def text_of(response: kserve.ModelStreamInferResponse) -> str:
    (output,) = response.infer_response.outputs
    (element,) = output.contents.bytes_contents
    return element.decode()


def is_final(response: kserve.ModelStreamInferResponse) -> bool:
    return response.infer_response.parameters["triton_final_response"].bool_param


async def test_texts_are_translated(public: Public) -> None:
    answer = await public.ask(f"{SERVICE}/ModelInfer", asked("A dog.", "", identity="7"), kserve.ModelInferResponse)

    assert list(answer.outputs[0].contents.bytes_contents) == [b"A dog.", b""]
    assert (answer.model_name, answer.model_version, answer.id) == ("echo", "7", "7")


async def test_a_timeout_is_the_deadline_if_it_is_shorter(public: Public, engine: EchoEngine) -> None:
    for timeout in (int(SECONDS * 1e6) // 2, int(SECONDS * 1e6) * 2):
        await public.ask(f"{SERVICE}/ModelInfer", asked("A dog.", timeout=timeout), kserve.ModelInferResponse)

    shorter, longer = (each - time.monotonic() for each in engine.deadlines)
    assert shorter < SECONDS / 2
    assert SECONDS / 2 < longer < 2 * SECONDS


async def test_errors_name_tensors_and_parameters(public: Public) -> None:
    request = asked("a")
    request.parameters["beam_size"].int64_param = 99

    code, words = await told(public.ask(f"{SERVICE}/ModelInfer", request, kserve.ModelInferResponse))

    assert (code, words) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "parameters.beam_size: must be from 1 to 8, not 99",
    )


async def test_readiness_is_that_of_the_server(public: Public) -> None:
    async def ready(name: str, version: str = "") -> bool:
        request = kserve.ModelReadyRequest(name=name, version=version)
        return (await public.ask(f"{SERVICE}/ModelReady", request, kserve.ModelReadyResponse)).ready

    watching = asyncio.create_task(public.health.watch(lambda: {"echo": True}, lambda: True))
    await asyncio.sleep(0)
    assert (await public.ask(f"{SERVICE}/ServerLive", b"", kserve.ServerLiveResponse)).live
    assert (await public.ask(f"{SERVICE}/ServerReady", b"", kserve.ServerReadyResponse)).ready
    assert [await ready("echo"), await ready("echo", "7")] == [True, True]
    assert [await ready("echo", "8"), await ready("no"), await ready("")] == [False, False, False]

    public.health.begin_draining()

    assert not (await public.ask(f"{SERVICE}/ServerReady", b"", kserve.ServerReadyResponse)).ready
    assert not await ready("echo")
    watching.cancel()


async def test_models_are_described(public: Public) -> None:
    metadata = await public.ask(
        f"{SERVICE}/ModelMetadata", kserve.ModelMetadataRequest(name="echo"), kserve.ModelMetadataResponse
    )
    config = await public.ask(
        f"{SERVICE}/ModelConfig", kserve.ModelConfigRequest(name="echo"), kserve.ModelConfigResponse
    )
    index = await public.ask(f"{SERVICE}/RepositoryIndex", b"", kserve.RepositoryIndexResponse)
    server = await public.ask(f"{SERVICE}/ServerMetadata", b"", kserve.ServerMetadataResponse)

    assert (metadata.name, config.config.name, server.name) == ("echo", "echo", "babelserve")
    assert [(each.name, each.version) for each in index.models] == [("echo", "7")]
    code, words = await told(
        public.ask(f"{SERVICE}/ModelMetadata", kserve.ModelMetadataRequest(name="no"), kserve.ModelMetadataResponse)
    )
    assert (code, words) == (grpc.StatusCode.NOT_FOUND, "Request for unknown model: 'no' is not found")


async def test_a_stream_answers_each_request_with_its_sentences(public: Public) -> None:
    answers = await responses(public, asked("A dog. A man.\n", identity="1"), asked("A cat.", "", identity="2"))

    first = [each for each in answers if each.infer_response.id == "1"]
    second = [each for each in answers if each.infer_response.id == "2"]
    assert [text_of(each) for each in first] == ["A dog. ", "A man.\n"]
    assert sorted(text_of(each) for each in second) == ["", "A cat."]
    assert [is_final(each) for each in answers] == [False, True, False, True]


async def test_a_request_that_fails_leaves_the_stream(public: Public, engine: EchoEngine) -> None:
    unknown = asked("a", identity="1")
    unknown.model_name = "no"

    failed, answered = await responses(public, unknown, asked("A dog.", identity="2"))

    assert failed.error_message == "model_name: no is not served here; echo is"
    assert (failed.infer_response.id, is_final(failed)) == ("1", True)
    assert (text_of(answered), answered.error_message) == ("A dog.", "")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Overloaded("the queue is full", "sentences", 2.0), "the queue is full; try again in 2.0 seconds"),
        (EngineFailed("a step failed"), "a step failed; request id "),
    ],
)
async def test_a_stream_tells_what_callers_need(
    public: Public, engine: EchoEngine, error: EngineFailed, words: str
) -> None:
    engine.refuses = error

    (answer,) = await responses(public, asked("A dog."))

    assert answer.error_message.startswith(words)


async def test_each_refused_request_of_a_stream_is_counted(
    public: Public, engine: EchoEngine, metrics: Metrics
) -> None:
    engine.refuses = Overloaded("the queue is full", "sentences")

    await responses(public, asked("A dog."), asked("A cat."))

    assert metrics.registry.get_sample_value("babelserve_queue_rejected_total", {"reason": "sentences"}) == 2


async def test_a_stream_may_wait_and_ends_when_the_server_does(public: Public) -> None:
    wait = asyncio.Event()

    async def sent() -> AsyncIterator[bytes]:
        yield asked("A dog.").SerializeToString()
        await wait.wait()

    call = stream(public, sent())
    assert text_of(await call.read()) == "A dog."
    public.running.refuse()

    error = await failure(call.read())

    assert error.code() is grpc.StatusCode.UNAVAILABLE
    wait.set()


async def test_a_stream_that_is_not_read_ends_and_gives_its_model_back(
    translator: Translator, opening_public: OpenPublic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.rpc.kserve._READ_SECONDS", 2.0 - translator.max_request_seconds)

    async def sent() -> AsyncIterator[bytes]:
        while True:  # until answers fill what the client's gRPC takes before somebody reads
            yield asked(*("a dog " * 400 for _ in range(20))).SerializeToString()

    async with opening_public() as public:
        call = stream(public, sent())
        await call.wait_for_connection()
        await asyncio.wait_for(public.running.wait_until_quiet(0.1), SECONDS)

        assert translator.memory.used_bytes == 0
        call.cancel()


async def test_bytes_that_are_no_message_end_a_stream(public: Public) -> None:
    async def sent() -> AsyncIterator[bytes]:
        yield b"\xff"

    error = await failure(stream(public, sent()).read())

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_stream_gives_its_memory_back(public: Public) -> None:
    used = public.translator.memory.used_bytes

    await responses(public, asked("A dog."))

    assert public.translator.memory.used_bytes == used
