"""Python client and command line of a babelserve server: `from client import Client`."""

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
    TranslationError,
    Unauthenticated,
    Unavailable,
)
from client.results import (
    DetectedLanguage,
    FinishReason,
    Hypothesis,
    ModelInfo,
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
    "ModelInfo",
    "ModelNotFound",
    "Overloaded",
    "PermissionDenied",
    "RouteLeg",
    "Sentence",
    "ServerFailed",
    "StreamedSentence",
    "TextError",
    "Timings",
    "TlsOptions",
    "TranslateResult",
    "Translation",
    "TranslationError",
    "Unauthenticated",
    "Unavailable",
]
