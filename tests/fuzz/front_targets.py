"""What fronts read of foreign messages: each input means a message of ours, or is refused in words that can be sent."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import DecodeError, Message
from starlette.requests import Request
from starlette.types import Message as Event

from babelserve.v1 import translation_pb2 as pb
from server.errors import TranslationError
from server.fronts import google, kserve, libretranslate, own, riva
from server.fronts.front import Front
from server.fronts.v1 import google_pb2, kserve_pb2, riva_pb2
from server.web.bodies import read_fields, read_json

KINDS = (b"application/json", b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=b", b"")
_OWN = (pb.TranslateRequest, pb.ScoreRequest, pb.DetectLanguagesRequest)
_SERVED = pb.ListModelsResponse(
    models=[
        pb.ModelInfo(
            name="m",
            source_language_codes=["en"],
            target_language_codes=["de"],
            language_pairs=[pb.LanguagePair(source_language_code="en", target_language_code="de")],
        )
    ]
)


def fuzz_libretranslate(data: bytes) -> None:
    """A type of content, and a body, which is the query too."""
    kind, body = KINDS[int.from_bytes(data[:1]) % len(KINDS)], data[1:]

    def read() -> list[Message]:
        fields = asyncio.run(read_fields(_request(kind, body), body))
        libretranslate.read_key(fields)
        return [libretranslate.read_translate(fields).message, libretranslate.read_detect(fields)]

    _check(read, libretranslate.FRONT)


def fuzz_own(data: bytes) -> None:
    """A body of our own API, for each method; what it means has a JSON form that means the same."""
    for kind in _OWN:

        def read(kind: type[Message] = kind) -> list[Message]:
            message = own.read_message(kind, read_json(data))
            again = own.read_message(kind, json.loads(own.write_message(message)))
            assert again.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)
            return [message]

        _check(read, own.FRONT)


def fuzz_google(data: bytes) -> None:
    """Requests of Google's client to translate and to detect."""
    _check_message(google_pb2.TranslateTextRequest, google.read_translate, data)
    _check_message(google_pb2.DetectLanguageRequest, google.read_detect, data)


def fuzz_riva(data: bytes) -> None:
    """A request of NVIDIA's client."""
    _check_message(riva_pb2.RivaTranslateTextRequest, riva.read_translate, data)


def fuzz_kserve(data: bytes) -> None:
    """A request of Triton's client, and how long it says that it waits."""
    _check_message(kserve_pb2.ModelInferRequest, lambda asked: kserve.read_infer(asked, _SERVED), data)
    _check_message(kserve_pb2.ModelInferRequest, kserve.read_timeout, data)


def _request(kind: bytes, body: bytes) -> Request:
    async def receive() -> Event:
        return {"type": "http.request", "body": body}

    return Request({"type": "http", "headers": [(b"content-type", kind)], "query_string": body[:64]}, receive)


def _check_message(kind: type[Any], read: Callable[[Any], Any], data: bytes) -> None:
    try:
        asked = kind.FromString(data)
    except DecodeError:
        return
    _check(lambda: [read(asked)], own.FRONT)


def _check(read: Callable[[], list[Any]], front: Front) -> None:
    """Raises if reading fails by anything but a declared error that the caller is to blame for."""
    error: TranslationError | None = None
    messages: list[Any] = []
    try:
        messages = read()
    except TranslationError as refused:
        error = refused
    for message in messages:
        if isinstance(message, Message):
            message.SerializeToString()
    if error is not None:
        status = front.status_of(error)
        assert 400 <= status < 500
        assert json.dumps(front.body(error, front.words_of(error, "id"), status), ensure_ascii=False).encode()


FRONT_TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "libretranslate": fuzz_libretranslate,
    "own": fuzz_own,
    "google": fuzz_google,
    "riva": fuzz_riva,
    "kserve": fuzz_kserve,
}
