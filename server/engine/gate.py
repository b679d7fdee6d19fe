"""What stands between an engine's lanes and the processor: a gate, where engines of one process share its cores."""

import contextlib
from collections.abc import Iterator
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
    """Lets an engine's lanes use the cores; called by their threads."""

    def work(self) -> AbstractContextManager[None]:
        """Counts a lane for as long as it has anything to run: its block."""

    def turn(self, asked_seconds: float) -> AbstractContextManager[Turn]:
        """Waits for the lane's turn, which is the block.

        Args:
            asked_seconds: that a lane would take for one step of all that the engine runs and that waits for it.
        """


class OpenGate:
    """Of an engine that shares its cores with no other."""

    def work(self) -> AbstractContextManager[None]:
        """Does nothing."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def turn(self, asked_seconds: float) -> Iterator[Turn]:  # noqa: ARG002  # as of `Gate`
        """Waits for nothing."""
        yield Turn()
