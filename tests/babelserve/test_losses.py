"""When a bulk call is made again, and after how long."""

import time
from typing import Any

import grpc
import pytest

from babelserve.errors import Overloaded, ServerFailed, TranslationError, Unavailable
from babelserve.losses import Losses

UNAVAILABLE, INTERNAL = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL
FULL = grpc.StatusCode.RESOURCE_EXHAUSTED
RESET = "Stream removed (RST_STREAM (Received RST_STREAM with error code 2))"


class Lost(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: str | None, initial: tuple[tuple[str, str], ...] | None) -> None:
        super().__init__(details)
        self._code, self._details, self._initial = code, details, initial

    def initial_metadata(self) -> tuple[tuple[str, str], ...] | None:
        return self._initial

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str | None:
        return self._details


def pause(
    losses: Losses,
    code: grpc.StatusCode = UNAVAILABLE,
    details: str | None = "draining",
    *,
    initial: tuple[tuple[str, str], ...] | None = None,
    retry_after_seconds: float | None = None,
) -> float:
    kind: type[Any] = {UNAVAILABLE: Unavailable, FULL: Overloaded}.get(code, ServerFailed)
    return losses.pause(Lost(code, details, initial), kind(details or "", retry_after_seconds=retry_after_seconds))


def losses_after_an_answer() -> Losses:
    losses = Losses(1)
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


def test_a_call_that_no_server_begins_is_made_again_as_often_as_the_client_says() -> None:
    losses = Losses(4)

    pauses = [pause(losses), pause(losses, FULL, "no room", retry_after_seconds=3.0), pause(losses)]

    assert 0 < pauses[0] < pauses[2] < pauses[1] == 3.0
    with pytest.raises(Unavailable, match="draining"):
        pause(losses)


def test_a_call_that_has_begun_is_made_again_although_nothing_was_answered() -> None:
    losses = Losses(1)

    assert pause(losses, initial=(("x-request-id", "1"),)) == 0.0
    assert pause(losses) > 0


def test_it_waits_as_long_as_a_full_server_says() -> None:
    losses = losses_after_an_answer()

    assert pause(losses) == 0.0
    assert pause(losses, FULL, "no room", retry_after_seconds=3.0) == 3.0
    assert pause(losses, FULL, "no room", retry_after_seconds=0.01) == pause(losses)


def test_it_is_made_again_for_a_while_from_the_first_call_that_fails_after_a_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, losses = 1000.0, losses_after_an_answer()
    monkeypatch.setattr(time, "monotonic", lambda: now)

    for _ in range(2):
        assert pause(losses) == 0.0
        now += 60.0  # for which the caller had no text
        assert pause(losses) > 0
        now += 44.9
        assert pause(losses) > 0
        losses.end()
    assert pause(losses) == 0.0
    assert pause(losses) > 0
    now += 45.0
    with pytest.raises(Unavailable):
        pause(losses)
