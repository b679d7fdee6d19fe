"""The memory of requests under way, counted in one place: taken before the memory is, given back at a call's end.

A process may take so much: its container's limit (`server.models.machine.memory_limit_bytes`), or `--memory-mib`. What
the loaded model, its caches and messages being read leave of that is for requests. One is counted as it was measured
with tracemalloc on 2026-11-22: 12 to 25 bytes for each byte of its message (parsed, split, its ids), and for each
sentence 2.5 KiB in the engine, and what its candidates hold. A tenth of the limit is left for what allocators lose.

An answer is counted until it is sent: Python's copy and gRPC's, which keep it until its caller reads.

Nobody can take it all: whoever holds more than a share is refused while more than half of all is held, and an eighth is
for those who hold nothing. A holder's large requests leave the last quarter of its share to its small ones. Shares are
those of tenants by their weights; where nobody says who it is, of addresses. Connections would not do, they cost
nothing to make; behind a proxy all have one address, and are one holder.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from server.errors import InvalidRequest, Overloaded, SettingsError
from server.shares import Shares

REQUEST_BYTES_PER_BYTE = 24
ANSWER_BYTES_PER_BYTE = 2
SENTENCE_BYTES = 3 << 10
CANDIDATE_BYTES = 512  # of a sentence, its text counted with the message
_LEAST_BYTES = 32 << 20  # for requests: a text of a MiB
_SPARED = 0.9  # of the limit; the rest is lost between pieces of memory
_FREE_FOR_ALL = 0.5  # of the memory: while no more is held, there are no shares
_MOST_OF_ONE = 0.875  # of the memory, whoever else there is
_FOR_LARGE = 0.75  # of a share
_SMALL = 1 / 256  # of a share
_ACTIVE_SECONDS = 10.0  # after its last request, that a holder keeps its share


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Whose memory it is: holders with the same name are one; `weight` is that of its share, over 0."""

    name: str = ""
    weight: float = 1.0


# Whose call this context serves, as far as memory goes; a front sets it when it lets the call in.
holder: ContextVar[Holder] = ContextVar("holder", default=Holder())  # noqa: B039 # it is frozen


class MemoryBudget:
    """Counts bytes, on the event loop's thread.

    Args:
        max_bytes: of all requests under way; may be set later.
        clock: gives instants.

    Attributes:
        max_bytes: as given.
        used_bytes: of requests under way, and of answers.
    """

    def __init__(self, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        self._reserved_bytes = 0
        self._shares: Shares[Holder] = Shares(_ACTIVE_SECONDS, clock)

    @contextlib.contextmanager
    def hold(self, num_bytes: int, *, is_more: bool = False) -> Iterator[None]:
        """Holds memory for one request of the context's holder until the block is left.

        Args:
            num_bytes: that it needs.
            is_more: than the request holds already, whatever its holder's share is.

        Raises:
            Overloaded: others hold too much, or this holder does.
            InvalidRequest: it is more than there will ever be.
        """
        if num_bytes > self.max_bytes:
            message = f"needs {_mib(num_bytes)} MiB of memory; this server has {_mib(self.max_bytes)} for requests"
            raise InvalidRequest("request", f"is too large: it {message}")
        self._check_room(num_bytes)
        if not is_more:
            self._check_share(holder.get(), num_bytes)
        give_back = self.keep(num_bytes)
        try:
            yield
        finally:
            give_back()

    def keep(self, num_bytes: int) -> Callable[[], None]:
        """Counts memory that the context's holder has in any case. Returns what is to be called, once, at its end."""
        own = holder.get()
        self._add(own, num_bytes)

        def give_back() -> None:
            self._add(own, -num_bytes)

        return give_back

    def reserve(self, num_bytes: int) -> bool:
        """Leaves so much to models that come later, in place of what was left to them; False if that is too much."""
        left = self.max_bytes + self._reserved_bytes - num_bytes
        if num_bytes > self._reserved_bytes and left < _LEAST_BYTES:
            return False
        self.max_bytes, self._reserved_bytes = left, num_bytes
        return True

    def _check_room(self, num_bytes: int) -> None:
        """Raises Overloaded if all together hold too much."""
        if self.used_bytes + num_bytes > self.max_bytes:
            message = f"requests under way hold {_mib(self.used_bytes)} of {_mib(self.max_bytes)} MiB"
            raise Overloaded(f"{message}, this one needs {_mib(num_bytes)}", "memory")

    def _check_share(self, own: Holder, num_bytes: int) -> None:
        """Raises Overloaded if a holder would have more than its share of what is scarce."""
        self._shares.ask(own, own.weight)
        held = self._shares.held(own)
        if held and self.used_bytes + num_bytes > self.max_bytes * _FREE_FOR_ALL:
            share = self.max_bytes * min(_MOST_OF_ONE, self._shares.share(own, own.weight))
            most = share if num_bytes <= share * _SMALL else share * _FOR_LARGE
            if held + num_bytes > most:
                message = f"the caller's requests under way hold {_mib(held)} of its {_mib(most)} MiB"
                raise Overloaded(f"{message}, this one needs {_mib(num_bytes)}", "memory")

    def _add(self, own: Holder, num_bytes: int) -> None:
        self.used_bytes += num_bytes
        self._shares.hold(own, own.weight, num_bytes)


def message_need(num_bytes: int) -> int:
    """Returns the memory that a message of so many bytes needs, its sentences not counted."""
    return num_bytes * REQUEST_BYTES_PER_BYTE


def answer_need(num_bytes: int) -> int:
    """Returns the memory that an answer of so many bytes takes until it is sent."""
    return num_bytes * ANSWER_BYTES_PER_BYTE


def sentences_need(num_sentences: int, num_hypotheses: int) -> int:
    """Returns the memory that sentences need which are searched for so many hypotheses."""
    return num_sentences * (SENTENCE_BYTES + num_hypotheses * CANDIDATE_BYTES)


def requests_share(limit_bytes: int, resident_bytes: int, growth_bytes: int, message_bytes: int) -> int:
    """Returns how much of a process's memory requests may take.

    Args:
        limit_bytes: of the process.
        resident_bytes: that it has, its model loaded.
        growth_bytes: that the model may take yet.
        message_bytes: of messages that are being read.

    Raises:
        SettingsError: too little is left to serve.
    """
    share = int(limit_bytes * _SPARED) - resident_bytes - growth_bytes - message_bytes
    if share < _LEAST_BYTES:
        taken = f"the model takes {_mib(resident_bytes)}, may take {_mib(growth_bytes)} more"
        message = f"{_mib(limit_bytes)} MiB are too few: {taken}, messages {_mib(message_bytes)}"
        raise SettingsError([f"--memory-mib: {message}, and requests need {_mib(_LEAST_BYTES)}"])
    return share


def _mib(num_bytes: float) -> str:
    return f"{num_bytes / (1 << 20):.0f}"
