"""Python client and command line of a babelserve server: `from client import Client`."""

import client.quiet  # noqa: F401 # before anything that imports gRPC
from client.channel import TlsOptions
from client.client import AsyncClient, Client
from client.errors import (
    DeadlineExceeded,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ServerFailed,
    TlsFailed,
    TranslationError,
    Unauthenticated,
    Unavailable,
)
from client.results import (
    FinishReason,
    Hypothesis,
    ModelInfo,
    Sentence,
    StreamedSentence,
    TextError,
    Timings,
    TranslateResult,
    Translation,
)

__all__ = [
    "AsyncClient",
    "Client",
    "DeadlineExceeded",
    "FinishReason",
    "Hypothesis",
    "InvalidRequest",
    "ModelInfo",
    "ModelNotFound",
    "Overloaded",
    "PermissionDenied",
    "Sentence",
    "ServerFailed",
    "StreamedSentence",
    "TextError",
    "Timings",
    "TlsFailed",
    "TlsOptions",
    "TranslateResult",
    "Translation",
    "TranslationError",
    "Unauthenticated",
    "Unavailable",
]
