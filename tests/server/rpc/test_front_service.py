"""What all services of other vendors have in common with ours, behind a real gRPC server."""

import logging
import random
from pathlib import Path
from typing import Any

import grpc
import pytest

from server.access.access import Access
from server.access.keys import hash_key
from server.errors import Overloaded
from server.fronts.v1 import google_pb2 as google
from server.fronts.v1 import kserve_pb2 as kserve
from server.fronts.v1 import riva_pb2 as riva
from server.telemetry.metrics import Metrics
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import OpenPublic, Public, count, failure, told, trailing

GOOGLE = "/google.cloud.translation.v3.TranslationService"
RIVA = "/nvidia.riva.nmt.RivaTranslation"
KSERVE = "/inference.GRPCInferenceService"
TEXT = kserve.ModelInferRequest.InferInputTensor(
    name="text", datatype="BYTES", shape=[1], contents=kserve.InferTensorContents(bytes_contents=[b"A dog."])
)
TRANSLATE: list[tuple[str, Any, Any, str]] = [
    (
        f"{GOOGLE}/TranslateText",
        google.TranslateTextRequest(contents=["A dog."], target_language_code="de"),
        google.TranslateTextResponse,
        "google",
    ),
    (
        f"{RIVA}/TranslateText",
        riva.RivaTranslateTextRequest(texts=["A dog."], target_language="de"),
        riva.RivaTranslateTextResponse,
        "riva",
    ),
    (f"{KSERVE}/ModelInfer", kserve.ModelInferRequest(inputs=[TEXT]), kserve.ModelInferResponse, "kserve"),
]
every_front = pytest.mark.parametrize(("path", "message", "kind", "front"), TRANSLATE)


@every_front
async def test_a_call_is_counted_and_logged_as_one_of_ours(
    public: Public,
    metrics: Metrics,
    caplog: pytest.LogCaptureFixture,
    path: str,
    message: Any,
    kind: Any,
    front: str,
) -> None:
    with caplog.at_level(logging.INFO):
        await public.ask(path, message, kind, (("x-request-id", "call-1"),))

    (facts,) = [vars(record)["facts"] for record in caplog.records if record.getMessage() == "request"]
    assert (facts["front"], facts["method"], facts["code"]) == (front, "Translate", "OK")
    assert count(metrics, "Translate", "OK") == 1
    labels = {"front": front, "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 1


@every_front
async def test_a_refused_caller_is_told_when_to_come_back(
    public: Public, engine: EchoEngine, path: str, message: Any, kind: Any, front: str
) -> None:
    engine.refuses = Overloaded("the queue is full", "sentences", 2.0)

    error = await failure(public.ask(path, message, kind))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert int(trailing(error)["grpc-retry-pushback-ms"]) >= 2000
    assert trailing(error)["x-request-id"]


@every_front
async def test_callers_need_a_key_and_have_a_quota(
    opening_public: OpenPublic, metrics: Metrics, tmp_path: Path, path: str, message: Any, kind: Any, front: str
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(
        f'[tenants.a]\nquota = {{ rate = 1, burst = 1 }}\nkeys = [{{ sha256 = "{hash_key("good").hex()}" }}]'
    )
    async with opening_public(Access(metrics.access, keys=keys)) as public:
        code, _ = await told(public.ask(path, message, kind))
        await public.ask(path, message, kind, (("authorization", "Bearer good"),))
        error = await failure(public.ask(path, message, kind, (("x-goog-api-key", "good"),)))

    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "quota" in (error.details() or "")
    assert int(trailing(error)["grpc-retry-pushback-ms"]) > 0


@every_front
async def test_bytes_that_are_no_message_are_refused(
    public: Public, path: str, message: Any, kind: Any, front: str
) -> None:
    code, words = await told(public.ask(path, b"\xff", kind))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert words == "request: is no valid protobuf message, or holds text that is no UTF-8"


@every_front
async def test_spoilt_messages_are_answered_or_refused(
    public: Public, path: str, message: Any, kind: Any, front: str
) -> None:
    dice, good = random.Random(7), message.SerializeToString()
    codes = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}
    seen = set()
    for _ in range(300):
        spoilt = bytearray(good)
        for _ in range(dice.randint(1, 3)):
            begin = dice.randrange(len(spoilt))
            spoilt[begin : begin + dice.randint(0, 2)] = dice.randbytes(dice.randint(0, 2))
        try:
            await public.ask(path, bytes(spoilt), kind)
            seen.add(grpc.StatusCode.OK)
        except grpc.aio.AioRpcError as error:
            seen.add(error.code())

    assert len(seen) > 1
    assert seen <= codes


@pytest.mark.parametrize(
    "path",
    [
        f"{GOOGLE}/BatchTranslateText",
        f"{RIVA}/StreamingTranslateSpeechToText",
        f"{KSERVE}/ModelStatistics",
    ],
)
async def test_methods_that_are_not_served_are_unimplemented(public: Public, path: str) -> None:
    name = path.rpartition("/")[2]

    code, words = await told(public.ask(path, b"", google.TranslateTextResponse))

    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert words.startswith(f"{name} is not served here; of ")


async def test_an_unknown_methods_name_is_neither_repeated_nor_logged(
    public: Public, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        _, words = await told(public.ask(f"{KSERVE}/odd+name*", b"", google.TranslateTextResponse))

    assert words.startswith("a value of 9 characters is not served here")
    assert "odd+name" not in repr([vars(record) for record in caplog.records])
