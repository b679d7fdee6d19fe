"""The memory of requests under way, counted in one place: taken before the memory is, given back at a call's end.

A process may take so much: its container's limit (`server.models.machine.memory_limit_bytes`), or `--memory-mib`. What
the loaded model, its caches and messages being read leave of that is for requests. One is counted as it was measured
with tracemalloc on 2026-11-22: 12 to 25 bytes for each byte of its message (parsed, split, its ids), and for each
sentence 2.5 KiB in the engine, and what its candidates hold. A tenth of the limit is left for what allocators lose.
"""

import contextlib
from collections.abc import Iterator

from server.errors import InvalidRequest, Overloaded, SettingsError

REQUEST_BYTES_PER_BYTE = 24
SENTENCE_BYTES = 3 << 10
CANDIDATE_BYTES = 512  # of a sentence, its text counted with the message
_LEAST_BYTES = 32 << 20  # for requests: a text of a MiB
_SPARED = 0.9  # of the limit; the rest is lost between pieces of memory


class MemoryBudget:
    """Counts bytes, on the event loop's thread.

    Args:
        max_bytes: of all requests under way; may be set later.

    Attributes:
        max_bytes: as given.
        used_bytes: of requests under way.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0

    @contextlib.contextmanager
    def hold(self, num_bytes: int) -> Iterator[None]:
        """Holds memory for one request until the block is left.

        Raises:
            Overloaded: others hold too much.
            InvalidRequest: it is more than there will ever be.
        """
        if num_bytes > self.max_bytes:
            message = f"needs {_mib(num_bytes)} MiB of memory; this server has {_mib(self.max_bytes)} for requests"
            raise InvalidRequest("request", f"is too large: it {message}")
        if self.used_bytes + num_bytes > self.max_bytes:
            message = f"requests under way hold {_mib(self.used_bytes)} of {_mib(self.max_bytes)} MiB"
            raise Overloaded(f"{message}, this one needs {_mib(num_bytes)}", "memory")
        self.used_bytes += num_bytes
        try:
            yield
        finally:
            self.used_bytes -= num_bytes


def message_need(num_bytes: int) -> int:
    """Returns the memory that a message of so many bytes needs, its sentences not counted."""
    return num_bytes * REQUEST_BYTES_PER_BYTE


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


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 20):.0f}"
