"""Requests that must fail, each with its own clear error: the table that `bad_input` works through."""

from collections.abc import Callable
from dataclasses import dataclass

import grpc

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest, TranslateResponse

SERVICE = "/babelserve.v1.TranslationService/"
# Stands in the bad texts; no error may repeat it.
SECRET = "secret-4711"

# Protocol-buffer bytes by hand: field 1 (contents) of length-delimited type, then field 3 (target language) "de".
_BAD_TEXT = b"\xff\xfe " + SECRET.encode()
INVALID_UTF8 = b"\x0a" + bytes([len(_BAD_TEXT)]) + _BAD_TEXT + b"\x1a\x02de"
# A length of 4 GiB of which nothing follows.
MALFORMED = b"\x0a\xff\xff\xff\xff\x0f"

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRequest:
    """A call that must fail.

    Attributes:
        name: What is wrong with it.
        send: Makes the call; raises `grpc.RpcError` when the server answers as it should.
        code: The status that it must have.
        mentions: Words that the message must hold, such as the field's name.
    """

    name: str
    send: Callable[[grpc.Channel], object]
    code: grpc.StatusCode
    mentions: tuple[str, ...] = ()


def _as_it_is(payload: bytes) -> bytes:
    """Serializer of a message that is bytes already."""
    return payload


def _raw(method: str, payload: bytes) -> Callable[[grpc.Channel], object]:
    """A unary call with these bytes as the message."""
    return lambda channel: channel.unary_unary(SERVICE + method, _as_it_is, _as_it_is)(
        payload, timeout=_TIMEOUT_SECONDS
    )


def _raw_stream(payload: bytes) -> Callable[[grpc.Channel], object]:
    """A call of TranslateStream with these bytes as the message."""
    return lambda channel: list(
        channel.unary_stream(SERVICE + "TranslateStream", _as_it_is, _as_it_is)(payload, timeout=_TIMEOUT_SECONDS)
    )


def _request(timeout: float = _TIMEOUT_SECONDS, **fields: object) -> Callable[[grpc.Channel], object]:
    """A call of Translate with a request of these fields, where nothing else is said a good one."""
    good = {"contents": ["A dog runs."], "source_language_code": "en", "target_language_code": "de"}

    def send(channel: grpc.Channel) -> object:
        call = channel.unary_unary(
            SERVICE + "Translate",
            request_serializer=TranslateRequest.SerializeToString,
            response_deserializer=TranslateResponse.FromString,
        )
        return call(TranslateRequest(**(good | fields)), timeout=timeout)  # type: ignore[arg-type]

    return send


def _decoding(**fields: float) -> Callable[[grpc.Channel], object]:
    """A good request with these decoding options."""
    return _request(decoding=DecodingOptions(**fields))  # type: ignore[arg-type]


def _text(num_bytes: int) -> str:
    """A text of sentences, of about this size."""
    sentence = f"The {SECRET} dog runs over the green field. "
    return sentence * (num_bytes // len(sentence) + 1)


def bad_requests() -> list[BadRequest]:
    """Returns all of them, in the order in which they are sent."""
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    expired = grpc.StatusCode.DEADLINE_EXCEEDED
    too_large = grpc.StatusCode.RESOURCE_EXHAUSTED
    rows: list[tuple[str, Callable[[grpc.Channel], object], grpc.StatusCode, tuple[str, ...]]] = [
        ("invalid UTF-8", _raw("Translate", INVALID_UTF8), invalid, ()),
        ("invalid UTF-8, stream", _raw_stream(b"\x0a" + bytes([len(INVALID_UTF8)]) + INVALID_UTF8), invalid, ()),
        ("malformed protobuf", _raw("Translate", MALFORMED), invalid, ()),
        ("malformed protobuf, stream", _raw_stream(MALFORMED), invalid, ()),
        ("malformed protobuf, ListModels", _raw("ListModels", MALFORMED), invalid, ()),
        ("10 MB text", _request(contents=[_text(10_000_000)]), too_large, ("larger than max",)),
        ("3 MiB text", _request(contents=[_text(3 << 20)]), invalid, ("contents",)),
        ("no text", _request(contents=[]), invalid, ("contents",)),
        ("1025 texts", _request(contents=["Hi."] * 1025), invalid, ("contents", "1024")),
        ("unknown target language", _request(target_language_code="tlh"), invalid, ("target_language_code",)),
        ("no target language", _request(target_language_code=""), invalid, ("target_language_code",)),
        ("unknown source language", _request(source_language_code="tlh"), invalid, ("source_language_code",)),
        ("unknown model", _request(model="no-such-model"), grpc.StatusCode.NOT_FOUND, ("no-such-model",)),
        ("mime type text/rtf", _request(mime_type="text/rtf"), invalid, ("mime_type",)),
        ("beam 1000", _decoding(beam_size=1000), invalid, ("beam_size", "1000")),
        ("beam 0", _decoding(beam_size=0), invalid, ("beam_size",)),
        ("5 hypotheses of beam 4", _decoding(beam_size=4, num_hypotheses=5), invalid, ("num_hypotheses",)),
        ("length penalty NaN", _decoding(length_penalty=float("nan")), invalid, ("length_penalty",)),
        ("length penalty infinite", _decoding(length_penalty=float("inf")), invalid, ("length_penalty",)),
        ("length penalty -1", _decoding(length_penalty=-1.0), invalid, ("length_penalty",)),
        ("no output tokens", _decoding(max_output_tokens=0), invalid, ("max_output_tokens",)),
        ("4 G output tokens", _decoding(max_output_tokens=2**32 - 1), invalid, ("max_output_tokens",)),
        ("deadline of 1 ms", _request(timeout=0.001, contents=[_text(20_000)]), expired, ()),
        ("200 kB in 100 ms", _request(timeout=0.1, contents=[_text(200_000)]), expired, ()),
        ("unknown method", _raw("NoSuchMethod", b""), grpc.StatusCode.UNIMPLEMENTED, ()),
    ]
    return [BadRequest(name=name, send=send, code=code, mentions=words) for name, send, code, words in rows]
