"""When a bulk call is made again, and after how long."""

import time
from typing import Any

import grpc
import pytest

from babelserve.errors import ServerFailed, TranslationError, Unavailable
from babelserve.losses import Losses

UNAVAILABLE, INTERNAL = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL
RESET = "Stream removed (RST_STREAM (Received RST_STREAM with error code 2))"


class Lost(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: str | None) -> None:
        super().__init__(details)
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str | None:
        return self._details


def pause(losses: Losses, code: grpc.StatusCode = UNAVAILABLE, details: str | None = "draining") -> float:
    kind: type[Any] = Unavailable if code is UNAVAILABLE else ServerFailed
    return losses.pause(Lost(code, details), kind(details or ""))


def losses_after_an_answer() -> Losses:
    losses = Losses()
    losses.end()
    return losses


@pytest.mark.parametrize("reason", [(UNAVAILABLE, None), (INTERNAL, RESET), (INTERNAL, "Internal error from Core")])
def test_a_lost_call_is_made_again_at_once(reason: tuple[grpc.StatusCode, str | None]) -> None:
    assert pause(losses_after_an_answer(), *reason) == 0.0


@pytest.mark.parametrize("reason", [(INTERNAL, None), (INTERNAL, "a fault"), (grpc.StatusCode.UNKNOWN, RESET)])
def test_a_call_that_has_failed_is_not(reason: tuple[grpc.StatusCode, str | None]) -> None:
    with pytest.raises(TranslationError) as raised:
        pause(losses_after_an_answer(), *reason)

    assert isinstance(raised.value.__cause__, Lost)


def test_a_call_to_a_server_that_never_answered_is_not() -> None:
    with pytest.raises(Unavailable, match="draining"):
        pause(Losses())


def test_it_is_made_again_for_a_while_and_as_long_again_after_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now, losses = 1000.0, losses_after_an_answer()
    monkeypatch.setattr(time, "monotonic", lambda: now)

    assert pause(losses) == 0.0
    now += 29.9
    assert pause(losses) > 0
    losses.end()
    now += 60.0
    assert pause(losses) == 0.0
    now += 29.9
    assert pause(losses) > 0
    now += 0.1
    with pytest.raises(Unavailable):
        pause(losses)
