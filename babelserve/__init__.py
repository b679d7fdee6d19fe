"""Python client and command line of a babelserve server: `from babelserve import Client`.

The names are imported when they are first used, for the server's sake: it imports `babelserve.v1` alone, which imports
this package, and all of the client would make its start longer by a twentieth.
"""

from importlib import import_module
from typing import TYPE_CHECKING

import babelserve.quiet  # noqa: F401 # before anything that imports gRPC

if TYPE_CHECKING:
    from babelserve.channel import TlsOptions
    from babelserve.client import Client
    from babelserve.client_asyncio import AsyncClient
    from babelserve.errors import (
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
    from babelserve.results import (
        BulkTranslation,
        DetectedLanguage,
        FinishReason,
        Hypothesis,
        KeptPart,
        Link,
        ModelInfo,
        Placement,
        RouteLeg,
        Score,
        ScoreResult,
        SearchNode,
        Sentence,
        StreamedSentence,
        TextError,
        Timings,
        Token,
        TranslateResult,
        Translation,
    )
    from babelserve.terms import GlossaryInfo, UsedGlossary, UsedTerm

__all__ = [
    "AsyncClient",
    "BulkTranslation",
    "Client",
    "DeadlineExceeded",
    "DetectedLanguage",
    "FailedPrecondition",
    "FinishReason",
    "GlossaryInfo",
    "Hypothesis",
    "InvalidRequest",
    "KeptPart",
    "Link",
    "ModelInfo",
    "ModelNotFound",
    "Overloaded",
    "PermissionDenied",
    "Placement",
    "RouteLeg",
    "Score",
    "ScoreResult",
    "SearchNode",
    "Sentence",
    "ServerFailed",
    "StreamedSentence",
    "TextError",
    "Timings",
    "TlsFailed",
    "TlsOptions",
    "Token",
    "TranslateResult",
    "Translation",
    "TranslationError",
    "Unauthenticated",
    "Unavailable",
    "UsedGlossary",
    "UsedTerm",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of this package

    def __getattr__(name: str) -> object:
        if name in __all__:
            for module in map(
                import_module,
                [
                    f"babelserve.{each}"
                    for each in ("channel", "client", "client_asyncio", "errors", "results", "terms")
                ],
            ):
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
