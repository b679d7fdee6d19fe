"""Counts the memory of running requests in one place. It is held before it is used, and given back when a call ends.

A process may take as much as its container's limit (`server.models.machine.memory_limit_bytes`) or `--memory-mib`.
Requests may have what the loaded models, their caches and the messages that are being read leave of it, except a tenth
that allocators lose. What a request needs is estimated by the constants below, measured with tracemalloc on 2026-11-22:
bytes for each byte of its message (parsed, split, token ids), and bytes for each sentence in the engine.

An answer is counted until it is sent: Python and gRPC each have a copy, and gRPC keeps its copy until the caller reads.

No holder can take all of it. While more than half of the memory is held, a holder with more than its share is refused,
and an eighth is left for new holders. Large requests leave the last quarter of the holder's share to its small ones.
Holders are tenants, with shares by their weights. Callers without a tenant are held apart by their addresses, because
connections cost nothing to make. Behind a proxy all callers have one address, and are one holder.
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
CANDIDATE_BYTES = 512  # of a sentence; its text is counted with the message
NODE_BYTES = 400  # of a node of a search, with its message
MARK_BYTES = 1 << 10  # of a tag within a sentence, from its reading to its place in the translation
_LEAST_BYTES = 32 << 20  # for requests: enough for a text of a MiB
_SPARED = 0.9  # of the limit; allocators lose the rest
_FREE_FOR_ALL = 0.5  # of the memory; while no more is held, shares are not checked
_MOST_OF_ONE = 0.875  # of the memory; the rest is for new holders
_FOR_LARGE = 0.75  # of a share; large requests may not use more
_SMALL = 1 / 256  # of a share; a request up to this is small
_ACTIVE_SECONDS = 10.0  # for which a holder keeps its share after its last request


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A holder of memory. Holders with the same name are one; `weight` is the weight of its share, over 0."""

    name: str = ""
    weight: float = 1.0


# The holder of the memory that this context's call takes. A front sets it when it lets the call in.
holder: ContextVar[Holder] = ContextVar("holder", default=Holder())  # noqa: B039 # it is frozen


class MemoryBudget:
    """Counts bytes, on the event loop's thread.

    Args:
        max_bytes: what all running requests may hold; may be set later.
        clock: gives instants, in seconds.

    Attributes:
        used_bytes: what running requests and unsent answers hold.
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
            num_bytes: what the request needs.
            is_more: whether the request holds memory already, and needs this beside it. Then shares are not checked.

        Raises:
            Overloaded: all holders together hold too much, or this holder does.
            InvalidRequest: the request needs more than there will ever be.
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
        """Counts memory that the context's holder has in any case. The caller calls the result once, at its end."""
        own = holder.get()
        self._add(own, num_bytes)

        def give_back() -> None:
            self._add(own, -num_bytes)

        return give_back

    def reserve(self, num_bytes: int) -> bool:
        """Leaves memory to models that are loaded later, in place of what was left to them before.

        Returns:
            Whether that was possible. If not, requests keep the least that a server starts with, or what they have.
        """
        total = self.max_bytes + self._reserved_bytes
        least = min(_LEAST_BYTES, self.max_bytes)
        is_possible = num_bytes <= self._reserved_bytes or total - num_bytes >= least
        self._reserved_bytes = num_bytes if is_possible else total - least
        self.max_bytes = total - self._reserved_bytes
        return is_possible

    def shrink(self, num_bytes: int) -> bool:
        """Leaves memory, from now on, to what is loaded for requests.

        Returns:
            Whether that was possible.
        """
        if self.max_bytes - num_bytes < _LEAST_BYTES:
            return False
        self.max_bytes -= num_bytes
        return True

    def _check_room(self, num_bytes: int) -> None:
        """Raises Overloaded if all holders together would hold too much."""
        if self.used_bytes + num_bytes > self.max_bytes:
            message = f"requests under way hold {_mib(self.used_bytes)} of {_mib(self.max_bytes)} MiB"
            raise Overloaded(f"{message}, this one needs {_mib(num_bytes)}", "memory")

    def _check_share(self, own: Holder, num_bytes: int) -> None:
        """Raises Overloaded if memory is scarce and the holder would have more than its share."""
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
    """Returns the bytes that a message of `num_bytes` needs, without its sentences."""
    return num_bytes * REQUEST_BYTES_PER_BYTE


def answer_need(num_bytes: int) -> int:
    """Returns the memory that an answer of so many bytes takes until it is sent."""
    return num_bytes * ANSWER_BYTES_PER_BYTE


def sentences_need(num_sentences: int, num_hypotheses: int, num_marks: int = 0, num_nodes: int = 0) -> int:
    """Returns the bytes that sentences need, with `num_hypotheses` for each, and so many tags and nodes in all."""
    of_each = SENTENCE_BYTES + num_hypotheses * CANDIDATE_BYTES
    return num_sentences * of_each + num_marks * MARK_BYTES + num_nodes * NODE_BYTES


def requests_share(limit_bytes: int, resident_bytes: int, growth_bytes: int, message_bytes: int) -> int:
    """Returns how many bytes of a process's memory requests may take.

    Args:
        limit_bytes: what the process may take.
        resident_bytes: what the process takes already, its models loaded.
        growth_bytes: what the models may take beyond that.
        message_bytes: what the messages take that are being read.

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
