"""What stands between an engine's lanes and the processor: a gate, where engines of one process share its cores."""

import contextlib
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Turn(NamedTuple):
    """One iteration of a lane.

    Attributes:
        waited_seconds: before it could begin.
        is_alone: whether no other engine runs anything.
    """

    waited_seconds: float = 0.0
    is_alone: bool = True


class Gate(Protocol):
    """Lets an engine's lanes use the cores; the lanes' threads call it."""

    def work(self) -> AbstractContextManager[None]:
        """Counts a lane as one that has something to run, during the block."""

    def turn(self, asked_seconds: float) -> AbstractContextManager[Turn]:
        """Waits until the lane may take its turn, which is the block.

        Args:
            asked_seconds: that a lane would take for one step of everything that the engine runs and that waits.
        """


class OpenGate:
    """The gate of an engine that shares its cores with no other: nothing waits."""

    def work(self) -> AbstractContextManager[None]:
        """As of `Gate`."""
        return contextlib.nullcontext()

    def turn(self, asked_seconds: float) -> AbstractContextManager[Turn]:  # noqa: ARG002  # of `Gate`
        """As of `Gate`."""
        return contextlib.nullcontext(Turn())
