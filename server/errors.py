"""Every failure that the server declares.

    TranslationError            answers a call; its text is safe for clients and never holds theirs
      InvalidRequest            INVALID_ARGUMENT    the request breaks a rule: field, limit and value named
      Unauthenticated           UNAUTHENTICATED     nobody known: no API key, or one that is wrong or has expired
      PermissionDenied          PERMISSION_DENIED   somebody known who may not do this
      ModelNotFound             NOT_FOUND           no such model here
      GlossaryNotFound          NOT_FOUND           no such glossary here
      PreconditionFailed        FAILED_PRECONDITION a request or a change does not fit how the server is set up
      Overloaded                RESOURCE_EXHAUSTED  too much waits, is being split or held, or a quota is used up
      NotServing                UNAVAILABLE         loading, shutting down, or a lane is lost; safe to retry
      DeadlineExceeded          DEADLINE_EXCEEDED   the caller's time, or the server's maximum, is over
      EngineFailed              INTERNAL            ours; the cause is in the log only
    StartupError                ends the process with exit code 2; lists every fault
      BundleError, SettingsError

Any other exception becomes INTERNAL with fixed words and the request's id (`server/translation/calls.py`).
"""

import enum
from collections.abc import Sequence

# Limits of the waiting queue, and of what is being split; an answer that would come too late; no memory for a request
# or a sentence; a message that did not come in time; a tenant's quota; at a gateway: the server behind it has refused.
REJECT_REASONS = ("sentences", "tokens", "splitting", "deadline", "memory", "unfinished", "quota", "elsewhere")


class Code(enum.Enum):
    """How a call ended. Names are those of gRPC's statuses; each front has a table of its own for them."""

    OK = enum.auto()
    CANCELLED = enum.auto()
    INVALID_ARGUMENT = enum.auto()
    DEADLINE_EXCEEDED = enum.auto()
    UNAUTHENTICATED = enum.auto()
    PERMISSION_DENIED = enum.auto()
    NOT_FOUND = enum.auto()
    FAILED_PRECONDITION = enum.auto()
    RESOURCE_EXHAUSTED = enum.auto()
    UNIMPLEMENTED = enum.auto()
    INTERNAL = enum.auto()
    UNAVAILABLE = enum.auto()

    @property
    def is_ours(self) -> bool:
        """Whether the server is at fault."""
        return self is Code.INTERNAL

    @property
    def is_capacity(self) -> bool:
        """Whether the server could have answered at another time."""
        return self in (Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE)


class TranslationError(Exception):
    """A call's declared failure. `str()` of it is sent to the client.

    Attributes:
        cause: the words of what failed within, for this process alone; not the exception, whose traceback would keep
            tensors alive.
        is_recorded: whether a call that ended with it has been counted and logged.
        retry_after_seconds: when a retry may succeed, which fronts tell their clients; None if nobody knows.
    """

    code: Code = Code.INTERNAL
    cause: str = ""
    is_recorded: bool = False
    retry_after_seconds: float | None = None


class InvalidRequest(TranslationError):
    """A field of the request breaks a rule.

    Args:
        field: its path in the request, such as "decoding.beam_size".
        message: the rule with its limit, and after ", not " the value found; no text of the user's.

    Attributes:
        field: as given.
        rule: the message without the value, for the log.
    """

    code = Code.INVALID_ARGUMENT

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.rule = message.partition(", not ")[0]


class Unauthenticated(TranslationError):
    """The server does not know who calls, and answers only those whom it knows."""

    code = Code.UNAUTHENTICATED


class PermissionDenied(TranslationError):
    """The server knows who calls, and the caller may not."""

    code = Code.PERMISSION_DENIED


class ModelNotFound(TranslationError):
    """The model that was asked for is not served here."""

    code = Code.NOT_FOUND


class GlossaryNotFound(TranslationError):
    """A glossary that was asked for is not loaded here."""

    code = Code.NOT_FOUND


class PreconditionFailed(TranslationError):
    """What a request or an operator wants cannot be, as things are set up; nothing has changed."""

    code = Code.FAILED_PRECONDITION


class Overloaded(TranslationError):
    """A limit of the server is reached.

    Args:
        message: which limit, and what waits.
        reason: which limit, one of `REJECT_REASONS`, for the metric.
        retry_after_seconds: when a retry may succeed.
        lasts_seconds: for which the like would be refused for the same cause; 0 if nobody knows.
    """

    code = Code.RESOURCE_EXHAUSTED
    retry_after_seconds: float

    def __init__(self, message: str, reason: str, retry_after_seconds: float = 1.0, lasts_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds
        self.lasts_seconds = lasts_seconds


class NotServing(TranslationError):
    """The server is loading or shutting down, or has lost what ran this sentence."""

    code = Code.UNAVAILABLE


class DeadlineExceeded(TranslationError):
    """The time for this call is over."""

    code = Code.DEADLINE_EXCEEDED


class EngineFailed(TranslationError):
    """A step failed under this sentence."""

    code = Code.INTERNAL


class StartupError(Exception):
    """The server cannot start. It never becomes a status.

    Args:
        faults: everything that is wrong, one line each.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = list(faults)


class BundleError(StartupError):
    """The bundle is not what its manifest says, or not readable by this server."""


class SettingsError(StartupError):
    """Flags, environment and machine do not fit together."""
