"""Whether a bulk call that has ended too early is made again: another server may go on, or the same after a restart."""

import time
from typing import Any

import grpc

from babelserve.errors import TranslationError, Unavailable

# After a loss, without an answer in between. Half, and a server that restarts may take longer. Twice, and an error is
# told late.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.5  # before each further call after a loss


class Losses:
    """The calls that were lost since the last answer."""

    def __init__(self) -> None:
        self._has_answered = False
        self._since: float | None = None

    def end(self) -> None:
        """Notes an answer."""
        self._has_answered = True
        self._since = None

    def pause(self, error: Any, failure: TranslationError) -> float:
        """Returns the seconds after which the call is made again.

        It is if texts have been answered before, at once after the first loss and for a while after it.

        Raises:
            TranslationError: the failure, if it is not.
        """
        if not (self._has_answered and _is_loss(error, failure)):
            raise failure from error
        now = time.monotonic()
        if self._since is None:
            self._since = now
            return 0.0
        if now >= self._since + _PATIENCE_SECONDS:
            raise failure from error
        return _PAUSE_SECONDS


def _is_loss(error: Any, failure: TranslationError) -> bool:
    """Whether the server may have ended, and not the call: then another call can go on.

    A proxy resets a call whose server it has lost. If a call ends while a text is being sent, gRPC's client for asyncio
    gives an error of its own, and hides the status.
    """
    words = error.details() or ""
    is_reset = "RST_STREAM" in words or words == "Internal error from Core"
    return isinstance(failure, Unavailable) or (error.code() is grpc.StatusCode.INTERNAL and is_reset)
