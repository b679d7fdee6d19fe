"""Callers as real ones are: gRPC's own client with our channel options; every call stands in a journal."""

import asyncio
import json
import math
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc

from babelserve.channel import channel_options, service_config
from babelserve.v1.translation_pb2 import TranslateRequest, TranslateResponse
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.chaos.journal import LATE_SECONDS, OK, Entry, Journal
from tests.chaos.requests import Requests, keyed_requests

_GIVE_UP_SECONDS = 15.0  # after a call's deadline: it hangs
_PLAIN = re.compile(r"[0-9a-f]{32}|[0-9]+(\.[0-9]+)?(e\+[0-9]+)?")


@dataclass(slots=True)
class Clients:
    """Calls to a server, or to several replicas of it.

    Attributes:
        requests: what is sent, in turn.
        journal: what became of it.
        details: the errors' words, ids and numbers left out.
        beam_size: of the requests; None for the server's own.
    """

    stub: "TranslationServiceStub"
    requests: Requests
    journal: Journal = field(default_factory=Journal)
    details: set[str] = field(default_factory=set)
    beam_size: int | None = 1
    metadata: Sequence[tuple[str, str]] = ()
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    _turn: int = 0

    async def call(self, timeout: float = 10.0, cancel_after: float = math.inf) -> Entry:
        """Makes a call; one that is cancelled in time counts as CANCELLED."""
        index = self._turn % len(self.requests)
        self._turn += 1
        entry = self.journal.open(index, time.perf_counter(), timeout)
        message = self.requests.message(index, self.beam_size)
        translate: Callable[..., grpc.aio.UnaryUnaryCall[TranslateRequest, TranslateResponse]] = self.stub.Translate
        call = translate(message, timeout=timeout, metadata=tuple(self.metadata))
        if cancel_after < math.inf:
            asyncio.get_running_loop().call_later(cancel_after, call.cancel)
        outcome, is_right = await self._outcome(call, index, timeout)
        if outcome is not None:
            self.journal.close(entry, outcome, time.perf_counter(), is_right=is_right)
        return entry

    async def closed(self, callers: int, seconds: float, timeout: float = 10.0) -> None:
        """Keeps so many callers calling; a refused one waits a moment."""
        end = time.perf_counter() + seconds

        async def caller() -> None:
            while time.perf_counter() < end:
                if (await self.call(timeout)).outcome != OK:
                    await asyncio.sleep(0.02)

        await asyncio.gather(*(caller() for _ in range(callers)))

    async def open(
        self,
        rate: float,
        seconds: float,
        *,
        timeout: Callable[[], float] = lambda: 10.0,
        cancels_after: Callable[[], float] = lambda: math.inf,
        until: asyncio.Event | None = None,
    ) -> None:
        """Makes so many calls a second, whatever becomes of them, and waits for all outcomes.

        Args:
            rate: calls a second on average.
            seconds: how long new calls begin; at most, if `until` is given.
            timeout: gives the seconds of each call.
            cancels_after: gives the seconds after which a call is cancelled.
            until: ends it.
        """
        calls: list[asyncio.Task[Entry]] = []
        due = time.perf_counter()
        end = due + seconds
        while (due := due + self.chance.expovariate(rate)) < end and not (until and until.is_set()):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            calls.append(asyncio.create_task(self.call(timeout(), cancels_after())))
        await asyncio.gather(*calls)

    def faults(self, codes: Sequence[str], late_seconds: float = LATE_SECONDS) -> list[str]:
        """Returns what breaks P1 to P3 where only these codes, and OK, may come."""
        found = self.journal.faults({OK, *codes}, late_seconds)
        leaks = [words for words in self.details if "failpoint" in words or "Traceback" in words or "/" in words]
        return found + [f"an error says {words!r}" for words in leaks]

    async def _outcome(
        self, call: "grpc.aio.UnaryUnaryCall[TranslateRequest, TranslateResponse]", index: int, timeout: float
    ) -> tuple[str | None, bool | None]:
        try:
            answer = await asyncio.wait_for(call, timeout + _GIVE_UP_SECONDS)
        except grpc.aio.AioRpcError as error:
            self.details.add(_PLAIN.sub("N", error.details() or ""))
            return error.code().name, None
        except asyncio.CancelledError:
            return "CANCELLED", None
        except TimeoutError:
            return None, None
        return OK, [each.text for each in answer.translations] == self.requests.expected[index]


@asynccontextmanager
async def clients(
    addresses: Sequence[str],
    requests: Requests,
    *,
    max_attempts: int = 1,
    beam_size: int | None = 1,
    checks_health: bool = True,
    options: Sequence[tuple[str, str | int]] = (),
) -> AsyncIterator[Clients]:
    """Clients of one server or several replicas, which share the calls in turn.

    Args:
        addresses: `host:port` of each.
        requests: what is sent.
        max_attempts: 1 for no retries, to 5.
        beam_size: of the requests.
        checks_health: as our client does. Behind a balancer it asks one replica, whose end then ends all calls.
        options: of the channel, besides our own.
    """
    target = f"ipv4:{','.join(addresses)}"
    # Attempts to connect to a replica that has gone must not grow further and further apart while a test lasts.
    settled = [("grpc.max_reconnect_backoff_ms", 500), *options]
    if not checks_health:
        config = {name: value for name, value in service_config(max_attempts).items() if name != "healthCheckConfig"}
        settled.append(("grpc.service_config", json.dumps(config)))
    own = [each for each in channel_options(max_attempts, None) if each[0] not in {name for name, _ in settled}]
    async with grpc.aio.insecure_channel(target, options=[*own, *settled]) as channel:
        yield Clients(TranslationServiceStub(channel), requests, beam_size=beam_size)


async def keyed_load(address: str, seconds: float, callers: int = 8) -> Clients:
    """Keeps a server with a keyed network busy; returns what became of the calls."""
    async with clients([address], keyed_requests(200)) as client:
        await client.closed(callers, seconds)
    return client
