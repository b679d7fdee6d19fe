"""Python client and command line of a babelserve server: `from client import Client`."""

import client.quiet  # noqa: F401 # before anything that imports gRPC
from client.channel import TlsOptions
from client.client import AsyncClient, Client
from client.errors import (
    DeadlineExceeded,
    FailedPrecondition,
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
    DetectedLanguage,
    FinishReason,
    Hypothesis,
    KeptPart,
    ModelInfo,
    Placement,
    RouteLeg,
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
    "DetectedLanguage",
    "FailedPrecondition",
    "FinishReason",
    "Hypothesis",
    "InvalidRequest",
    "KeptPart",
    "ModelInfo",
    "ModelNotFound",
    "Overloaded",
    "PermissionDenied",
    "Placement",
    "RouteLeg",
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
