"""Whether a bulk call that has ended too early is made again: another server may go on, or the same after a restart."""

import time
from typing import Any

import grpc

from babelserve.errors import Overloaded, TranslationError, Unavailable

# That calls may fail after a loss. Half, and a server that is back after 20 s is not found: a channel tries it every
# 10 s. Twice, and an error is told late.
_PATIENCE_SECONDS = 45.0
_PAUSE_SECONDS = 0.5  # before each call that follows such a failure
_FIRST_PAUSE_SECONDS = 0.1  # before a call is made again that no server has begun; doubled each time
_REQUEST_ID = "x-request-id"  # in the initial metadata of a call that has begun


class Losses:
    """The calls that were lost since the last answer.

    Args:
        max_attempts: of the call until a server begins to answer it.
    """

    def __init__(self, max_attempts: int) -> None:
        self._left = max_attempts
        self._first_pause = _FIRST_PAUSE_SECONDS
        self._has_begun = False  # whether a server has taken the work
        self._is_lost = False
        self._failing_since: float | None = None

    def end(self) -> None:
        """Notes an answer."""
        self._has_begun = True
        self._is_lost = False
        self._failing_since = None

    def pause(self, error: Any, failure: TranslationError) -> float:
        """Returns the seconds after which a call that has ended with an error is made again.

        Until a server has answered texts, or has said that the call has begun, there are `max_attempts`. After that the
        first call that follows a loss is made at once. If that fails, too, calls are made for a while.

        Raises:
            TranslationError: the failure, if the call is not made again.
        """
        self._has_begun = self._has_begun or _REQUEST_ID in dict(error.initial_metadata() or ())
        if not _is_loss(error, failure):
            raise failure from error
        asked = failure.retry_after_seconds or 0.0
        if not self._has_begun:
            self._left -= 1
            if self._left <= 0:
                raise failure from error
            self._first_pause *= 2
            return asked or self._first_pause / 2
        if not self._is_lost:
            self._is_lost = True
            return asked
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if now >= self._failing_since + _PATIENCE_SECONDS:
            raise failure from error
        return max(_PAUSE_SECONDS, asked)


def _is_loss(error: Any, failure: TranslationError) -> bool:
    """Whether the server may have ended, and not the call: then another call can go on.

    The servers that are left may have no room at first. A proxy resets a call whose server it has lost. If a call ends
    while a text is being sent, gRPC's client for asyncio gives an error of its own, and hides the status.
    """
    words = error.details() or ""
    is_reset = "RST_STREAM" in words or words == "Internal error from Core"
    return isinstance(failure, Unavailable | Overloaded) or (error.code() is grpc.StatusCode.INTERNAL and is_reset)
