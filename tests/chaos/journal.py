"""What became of every call: the ledger from which the promises P1 to P3 are proved."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

OK = "OK"
PARTIAL = "OK for some texts"  # the others have an error of their own; a fault unless a case expects it
DOCUMENTED_CODES = frozenset(
    {
        OK,
        "CANCELLED",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "RESOURCE_EXHAUSTED",
        "INTERNAL",
        "UNAVAILABLE",
        "UNAUTHENTICATED",
        "PERMISSION_DENIED",
    }
)
OVERLOAD_CODES = frozenset({OK, PARTIAL, "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"})  # where there is too much to do
WRONG = "with another call's answer, or a wrong one"
LATE_SECONDS = 1.0  # after its deadline a call without an outcome hangs
QUICK_LATE_SECONDS = 5.0  # of the quick part, where a busy machine lets the callers themselves notice late


@dataclass(slots=True)
class Entry:
    """One call.

    Attributes:
        request: which of the load's requests it sent.
        due: instant at which it was to be sent; its latency counts from here.
        timeout: seconds from there to its deadline; infinite for none.
        outcome: name of the status code, or of the HTTP/2 error that gRPC would turn into one; None while it runs.
        ended: instant of the outcome.
        attempts: how often it was sent.
        pushback_ms: of the last refusal; None where the server named none.
        is_right: whether the answer was this request's own; None for no answer.
        tenant: whose call it is.
    """

    request: int
    due: float
    timeout: float
    outcome: str | None = None
    ended: float = math.nan
    attempts: int = 1
    pushback_ms: int | None = None
    is_right: bool | None = None
    tenant: int = 0

    @property
    def latency(self) -> float:
        """Seconds from when it was due to its outcome."""
        return self.ended - self.due

    @property
    def is_good(self) -> bool:
        """Whether it was answered, rightly and in time: what goodput counts."""
        return self.outcome == OK and self.is_right is not False and self.latency <= self.timeout


@dataclass(slots=True)
class Journal:
    """All calls of a load."""

    entries: list[Entry] = field(default_factory=list)
    num_ended_twice: int = 0

    def open(self, request: int, due: float, timeout: float = math.inf, tenant: int = 0) -> Entry:
        """Notes that a call begins."""
        entry = Entry(request, due, timeout, tenant=tenant)
        self.entries.append(entry)
        return entry

    def close(self, entry: Entry, outcome: str, now: float, *, is_right: bool | None = None) -> None:
        """Notes a call's outcome; a second one is a fault."""
        if entry.outcome is not None:
            self.num_ended_twice += 1
            return
        entry.outcome, entry.ended, entry.is_right = outcome, now, is_right

    def counts(self) -> Counter[str]:
        """Returns how many calls ended how."""
        return Counter(entry.outcome or "no outcome" for entry in self.entries)

    def faults(self, codes: Iterable[str] = DOCUMENTED_CODES, late_seconds: float = LATE_SECONDS) -> list[str]:
        """Returns what breaks P1, P2 or P3; `codes` are those that may come."""
        allowed = frozenset(codes) | {"no outcome"}
        found = {
            "without an outcome": sum(entry.outcome is None for entry in self.entries),
            "with two outcomes": self.num_ended_twice,
            "ended too late": sum(entry.latency > entry.timeout + late_seconds for entry in self.entries),
            WRONG: sum(entry.is_right is False for entry in self.entries),
        }
        found |= {f"ended {code}": count for code, count in self.counts().items() if code not in allowed}
        return [f"{count} calls {what}" for what, count in found.items() if count]
