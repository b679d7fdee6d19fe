"""What fronts ask: `Backend` answers messages, in this process (`server.fronts.in_process`) or by another server."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from babelserve.v1 import glossary_store_pb2 as store_pb
from babelserve.v1 import translation_pb2 as pb
from server.access.directory import PeerNames
from server.errors import TranslationError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls, and how.

    Attributes:
        front: one of `server.telemetry.metrics.FRONTS`.
        request_id: from `server.translation.calls.choose_id`.
        address: of the caller, without a port; callers without a key are told apart by it.
        key: the API key that came with the call; None if none did.
        names: of the certificate that came with the connection; None if none did.
        traceparent: the header of that name; None if none came.
        seconds: that the caller still waits; None for ever.
    """

    front: str
    request_id: str
    address: str = ""
    key: str | None = None
    names: PeerNames | None = None
    traceparent: str | None = None
    seconds: float | None = None


class Backend(Protocol):
    """Answers the messages of `babelserve.v1`; on one event loop.

    Each method raises TranslationError, which the front answers, and CancelledError if its task is cancelled, which a
    front does when the caller has left. `Overloaded.retry_after_seconds` is then what this caller is to be told.
    """

    async def translate(self, message: pb.TranslateRequest, caller: Caller) -> pb.TranslateResponse:
        """Translates all texts. Raises TranslationError if all of them fail."""
        ...

    async def translate_stream(
        self,
        message: pb.TranslateStreamRequest,
        caller: Caller,
        send: Callable[[pb.TranslateStreamResponse], Awaitable[None]],
    ) -> None:
        """Sends each sentence as it finishes. An error may come after some of them."""
        ...

    async def translate_bulk(
        self,
        options: pb.TranslateRequest,
        texts: Sequence[str],
        caller: Caller,
        take: Callable[[int, pb.Translation], None],
    ) -> None:
        """Translates texts as those of a bulk call: each one waits for room, with PRIORITY_LOW unless options say else.

        Args:
            options: what all texts ask for, without texts.
            texts: any number.
            caller: who calls.
            take: is called for each text when it is done, with its index and its translation or status.
        """
        ...

    async def score(self, message: pb.ScoreRequest, caller: Caller) -> pb.ScoreResponse:
        """Scores all pairs. Raises TranslationError if all of them fail."""
        ...

    async def list_models(self, caller: Caller) -> pb.ListModelsResponse:
        """Returns the descriptions of the served models, the default first."""
        ...

    async def list_glossaries(self, caller: Caller) -> pb.ListGlossariesResponse:
        """Returns the descriptions of the loaded glossaries, by name."""
        ...

    async def detect_languages(self, message: pb.DetectLanguagesRequest, caller: Caller) -> pb.DetectLanguagesResponse:
        """Returns the language of each text."""
        ...

    async def identify(self, caller: Caller) -> str:
        """Returns what tells callers apart: the name of the tenant, or the address of one without a tenant."""
        ...

    async def put_glossary(self, message: store_pb.PutKeptGlossaryRequest, caller: Caller) -> store_pb.KeptGlossary:
        """Keeps a glossary of the caller's tenant."""
        ...

    async def get_glossary(self, message: store_pb.GetKeptGlossaryRequest, caller: Caller) -> store_pb.KeptGlossary:
        """Returns a glossary that the caller's tenant keeps, with its terms unless the message wants none."""
        ...

    async def read_glossary(
        self, message: store_pb.GetKeptGlossaryRequest, caller: Caller, read: Callable[[store_pb.KeptGlossary], _T]
    ) -> _T:
        """Returns what a function returns that takes such a glossary, on another thread: there may be 100,000 terms."""
        ...

    async def list_kept_glossaries(self, caller: Caller) -> store_pb.ListKeptGlossariesResponse:
        """Returns the glossaries that the caller's tenant keeps, without their terms, the oldest first."""
        ...

    async def delete_glossary(self, message: store_pb.DeleteKeptGlossaryRequest, caller: Caller) -> None:
        """Forgets a glossary of the caller's tenant."""
        ...

    def keep(self, num_bytes: int) -> Callable[[], None]:
        """Counts the memory of an answer of so many bytes; the front calls the result once, when the answer is sent."""
        ...

    async def record(self, error: TranslationError, caller: Caller) -> None:
        """Counts and logs an error that a front has raised itself, because what came means no message."""
        ...

    @property
    def is_serving(self) -> bool:
        """Whether requests are welcome."""
        ...

    @property
    def asks_for_key(self) -> bool:
        """Whether callers need an API key, or a certificate."""
        ...
