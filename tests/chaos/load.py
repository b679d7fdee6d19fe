"""The load generator, a process of its own: `python -m tests.chaos.load` reads commands and answers, as JSON lines.

It tells each call in the journal's terms. Arrivals of an open loop are Poisson's, whatever the server does; a latency
counts from the instant at which the call was due, so that a client that falls behind does not flatter the server.
"""

import asyncio
import json
import math
import random
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from google.protobuf.message import DecodeError
from grpc import StatusCode

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest, TranslateResponse
from tests.chaos.core_client import CoreConnection, connect_core
from tests.chaos.http1 import HttpConnection, connect_http
from tests.chaos.http2 import Connection, connect
from tests.chaos.journal import OK, OVERLOAD_CODES, PARTIAL, Entry, Journal

PATH = "/babelserve.v1.TranslationService/Translate"
# What a client of ours does (`babelserve/channel.py`); gRPC's A6 says how.
_RETRYABLE = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "REFUSED_STREAM"}
_MAX_ATTEMPTS = 4
_MAX_TOKENS, _TOKEN_RATIO = 100.0, 0.1
_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS = 0.05, 0.5
_TICK_SECONDS = 0.001
_NAMES = {str(code.value[0]): code.name for code in StatusCode}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A load.

    Attributes:
        address: `host:port`.
        contents: texts of each request; calls draw from them.
        expected: the translations of each request.
        seconds: how long new calls begin.
        timeout: seconds that a call has; None for ever.
        rate: calls a second of an open loop; None for a closed one.
        callers: of a closed loop: each sends its next call when it has the last one's outcome.
        with_retries: whether calls are sent again as our client would.
        obeys_pushback: whether a closed loop's caller waits as long as a refusal says before its next call.
        connections: over which the calls go in turn.
        beam_size: None for the server's own.
        metadata: of every call, as pairs.
        model: that is named; empty for none.
        is_core: whether gRPC's own client sends them.
        is_http: whether they go over HTTP instead.
        seed: of arrivals and choices.
    """

    address: str
    contents: list[list[str]]
    expected: list[list[str]]
    seconds: float
    timeout: float | None = None
    rate: float | None = None
    callers: int = 1
    with_retries: bool = False
    obeys_pushback: bool = True
    connections: int = 8
    beam_size: int | None = None
    metadata: list[tuple[str, str]] = field(default_factory=list)
    model: str = ""
    is_core: bool = False
    is_http: bool = False
    seed: int = 1

    def messages(self) -> list[bytes]:
        """Returns the requests with gRPC's prefix."""
        decoding = DecodingOptions(beam_size=self.beam_size)
        requests = [
            TranslateRequest(
                contents=texts, target_language_code="de", decoding=decoding, model=self.model
            ).SerializeToString()
            for texts in self.contents
        ]
        return [struct.pack(">BI", 0, len(request)) + request for request in requests]


class Load:
    """Sends calls, and notes in a journal what became of them."""

    def __init__(self, command: Command, connections: Sequence[Connection | CoreConnection | HttpConnection]) -> None:
        self.journal = Journal()
        self.target_tokens = 0  # of right answers in time
        self.lags: list[float] = []
        self._command = command
        self._messages = command.messages()
        self._timeout = math.inf if command.timeout is None else command.timeout
        self._connections = connections
        self._random = random.Random(command.seed)
        self._tokens = _MAX_TOKENS
        self._turn = 0
        self._deadlines: deque[tuple[float, _Call]] = deque()
        self._running: set[_Call] = set()

    async def run(self) -> None:
        """Makes all calls, and waits until each has its outcome, or is long overdue."""
        sweeping = asyncio.create_task(self._expire())
        if self._command.rate is None:
            await self._closed()
        else:
            await self._open(self._command.rate)
        give_up = time.perf_counter() + (self._timeout + 2.0 if self._timeout < math.inf else 60.0)
        while self._running and time.perf_counter() < give_up:
            await asyncio.sleep(0.01)
        sweeping.cancel()

    def start(self, request: int, due: float, ended: Callable[[Entry], None] | None = None) -> None:
        """Sends one call; `ended` is told of its outcome."""
        call = _Call(self, self.journal.open(request, due, self._timeout), ended)
        self._running.add(call)
        if self._timeout < math.inf:
            self._deadlines.append((due + self._timeout, call))
        call.send()

    def connection(self) -> Any:
        """Returns the connection of the next call."""
        self._turn += 1
        return self._connections[self._turn % len(self._connections)]

    def message(self, request: int) -> bytes:
        """Returns what a request sends."""
        return self._messages[request]

    def may_retry(self, entry: Entry) -> bool:
        """Says whether our client would send a failed call again; throttles as it does."""
        self._tokens = max(0.0, self._tokens - 1.0)
        return self._command.with_retries and entry.attempts < _MAX_ATTEMPTS and self._tokens > _MAX_TOKENS / 2

    def backoff(self, attempts: int) -> float:
        """Returns seconds to wait where the server does not say."""
        longest = min(_BACKOFF_SECONDS * 2.0 ** (attempts - 1), _MAX_BACKOFF_SECONDS)
        return longest * self._random.uniform(0.8, 1.2)

    def end(self, call: "_Call", outcome: str, body: bytes) -> None:
        """Notes an outcome; reads and compares an answer."""
        entry = call.entry
        is_right = None
        self._running.discard(call)
        if outcome == OK:
            self._tokens = min(_MAX_TOKENS, self._tokens + _TOKEN_RATIO)
            is_right, is_whole = self._judge(entry, body)
            outcome = outcome if is_whole else PARTIAL
        self.journal.close(entry, outcome, time.perf_counter(), is_right=is_right)
        if call.ended is not None:
            call.ended(entry)

    def _judge(self, entry: Entry, body: bytes) -> tuple[bool, bool]:
        """Returns whether each text has its own translation or an overload's error, and whether none has an error."""
        try:
            translations = TranslateResponse.FromString(body[5:]).translations
        except DecodeError:
            return False, True
        expected = self._command.expected[entry.request]
        is_whole = not any(translation.HasField("status") for translation in translations)
        if is_whole:
            self.target_tokens += sum(translation.target_tokens for translation in translations)
        is_right = len(translations) == len(expected) and all(
            (_NAMES.get(str(each.status.code)) in OVERLOAD_CODES if each.HasField("status") else each.text == text)
            for each, text in zip(translations, expected, strict=True)
        )
        return is_right, is_whole

    async def _open(self, rate: float) -> None:
        due = start = time.perf_counter()
        while True:
            due += self._random.expovariate(rate)
            if due > start + self._command.seconds:
                return
            if (ahead := due - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            elif len(self.journal.entries) % 16 == 0:
                await asyncio.sleep(0)  # late: answers must be read all the same
            self.lags.append(time.perf_counter() - due)
            self.start(self._random.randrange(len(self._messages)), due)

    async def _closed(self) -> None:
        end = time.perf_counter() + self._command.seconds

        async def caller() -> None:
            while time.perf_counter() < end:
                request = self._random.randrange(len(self._messages))
                ended: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
                self.start(request, time.perf_counter(), ended.set_result)
                entry = await ended
                if entry.outcome != OK and self._command.obeys_pushback:
                    await asyncio.sleep((entry.pushback_ms or 0) / 1000)

        await asyncio.gather(*(caller() for _ in range(self._command.callers)))

    async def _expire(self) -> None:
        """Gives up the calls whose deadline has passed, as any gRPC client does."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.perf_counter()
            while self._deadlines and self._deadlines[0][0] <= now:
                _, call = self._deadlines.popleft()
                if call.entry.outcome is None:
                    call.expire()


class _Call:
    """One call with its attempts."""

    def __init__(self, load: Load, entry: Entry, ended: Callable[[Entry], None] | None) -> None:
        self.entry = entry
        self.ended = ended
        self._load = load
        self._connection: Any = None
        self._stream: Any = None

    def send(self) -> None:
        """Makes an attempt."""
        entry = self.entry
        if entry.outcome is not None:  # expired while it waited to be sent again
            return
        self._connection = self._load.connection()
        left = entry.due + entry.timeout - time.perf_counter()
        self._stream = self._connection.call(self._load.message(entry.request), max(0.001, left), self._end)

    def expire(self) -> None:
        """Ends it without an answer."""
        if self._connection is not None and self._stream is not None:
            self._connection.cancel(self._stream)
        self._load.end(self, "DEADLINE_EXCEEDED", b"")

    def _end(self, outcome: str, body: bytes, fields: dict[bytes, bytes]) -> None:
        outcome = _NAMES.get(outcome, outcome)
        pushback = fields.get(b"grpc-retry-pushback-ms")
        self.entry.pushback_ms = int(pushback) if pushback is not None else None
        if outcome in _RETRYABLE and self._load.may_retry(self.entry):
            wait = self._load.backoff(self.entry.attempts) if pushback is None else int(pushback) / 1000
            if 0 <= wait < self.entry.due + self.entry.timeout - time.perf_counter():
                self.entry.attempts += 1
                asyncio.get_running_loop().call_later(wait, self.send)
                return
        self._load.end(self, outcome, body)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = Command(**json.loads(line))
        metadata = tuple((key, value) for key, value in command.metadata)
        opened: Callable[..., Any] = connect_http if command.is_http else connect_core if command.is_core else connect
        connections = [await opened(command.address, PATH, metadata) for _ in range(command.connections)]
        load = Load(command, connections)
        started, cpu_started = time.perf_counter(), time.process_time()
        await load.run()
        answer: dict[str, Any] = {
            "journal": [list(asdict(entry).values()) for entry in load.journal.entries],
            "num_ended_twice": load.journal.num_ended_twice,
            "target_tokens": load.target_tokens,
            "lags": load.lags,
            "seconds": time.perf_counter() - started,
            "cpu_seconds": time.process_time() - cpu_started,
        }
        for connection in connections:
            connection.close()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_serve())
