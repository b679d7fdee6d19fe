"""What a case is, and what it is told."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from tests.acceptance.report import Check

SKIPPED = "skipped"  # the only line of a case that could not be run


class Skipped(Exception):
    """A case cannot be run here; the text says what it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How much to do.

    Attributes:
        is_quick: as much as fits into `make test`.
        seconds: of the soak, R1.
        seed: of whatever is drawn.
    """

    is_quick: bool = False
    seconds: float = 1800.0
    seed: int = 1

    def count(self, whole: int, quick: int) -> int:
        """Returns how often to do something."""
        return quick if self.is_quick else whole


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the plan."""

    name: str
    title: str
    run: Callable[[Options], Iterable[Check]]


def asynchronous(run: Callable[[Options], Coroutine[Any, Any, list[Check]]]) -> Callable[[Options], list[Check]]:
    """Returns what runs a coroutine to its end."""
    return lambda options: asyncio.run(run(options))


def none(name: str, faults: Iterable[str], told: str = "none") -> Check:
    """Returns a check that holds where there are no faults."""
    found = list(faults)
    return Check(name, "; ".join(found) or told, "none", not found)


def at_most(name: str, value: float, bar: float, unit: str = "") -> Check:
    """Returns a check that a figure is no larger than its bar; NaN is no figure."""
    return Check(name, f"{value:.4g}{unit}", f"<= {bar:g}{unit}", value <= bar)


def told(name: str, measured: str) -> Check:
    """Returns a line that only informs."""
    return Check(name, measured)
