"""R8, R9: callers who leave, by thousands, while others stay."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from tests.acceptance.report import Check
from tests.chaos.callers import REFUSED, percentile
from tests.chaos.case import Case, Options, asynchronous, at_most, none, told
from tests.chaos.clients import Clients, clients
from tests.chaos.journal import LATE_SECONDS, OK, QUICK_LATE_SECONDS, Entry
from tests.chaos.observations import left_behind, metric, resources
from tests.chaos.requests import keyed_requests
from tests.chaos.servers import BrokenServer, Spec, broken_server

_STAYING_RATE = 20.0  # calls a second
_LEAVING_RATE = 500.0
_CALM_SECONDS, _QUICK_CALM_SECONDS = 20.0, 5.0
_LONGEST_STAY_SECONDS = 0.2
_DEADLINES_SECONDS = (0.001, 0.050)
_STEP_SECONDS = 0.08  # so long that a row which is not freed is seen: a sentence takes up to 25
_FLAGS = ("--max-encode-tokens", "2048")  # of as long a step as that; by default 250 of these sentences a second
_FREED_SECONDS, _QUICK_FREED_SECONDS = 0.4, 1.0  # the quick part shares its cores; unfreed rows take longer than both
_LAST_SECONDS = 0.3
# Of those who stay. The quick part runs on busy machines, where the forecast of an answer is rightly more than 10 s.
_STAYING_TIMEOUT_SECONDS, _QUICK_TIMEOUT_SECONDS = 10.0, 60.0
_CANARY_ROWS = 4  # that the server's own proof of its lane may take


@dataclass(frozen=True, slots=True)
class Crowd:
    """Callers of one server: some stay, the others leave.

    Attributes:
        calm_p99: seconds, of those who stay while nobody else calls.
        stays: makes the calls of those who stay, for so many seconds.
    """

    server: BrokenServer
    stay: Clients
    leave: Clients
    calm_p99: float
    stays: Callable[[float], Awaitable[None]]

    def rows(self) -> float:
        """Returns the rows that were stepped so far, one token each."""
        return metric(self.server.process, "batch_rows_sum")

    def tokens(self) -> float:
        """Returns the tokens of finished translations so far."""
        return metric(self.server.process, "generated_tokens_total")


@asynccontextmanager
async def _crowd(checks: list[Check], options: Options) -> AsyncIterator[Crowd]:
    """A server with its callers; when they are done, it has to be as it was (P4)."""
    with broken_server(Spec(step_seconds=_STEP_SECONDS), _FLAGS) as server:
        requests = keyed_requests(1000)
        async with clients([server.address], requests) as stay, clients([server.address], requests) as leave:
            timeout = _QUICK_TIMEOUT_SECONDS if options.is_quick else _STAYING_TIMEOUT_SECONDS
            stays = partial(stay.open, _STAYING_RATE, timeout=lambda: timeout)
            await stays(_QUICK_CALM_SECONDS if options.is_quick else _CALM_SECONDS)
            calm_p99 = percentile([entry.latency for entry in stay.journal.entries], 99)
            before = resources(server.pid)
            yield Crowd(server, stay, leave, calm_p99, stays)
        left = await asyncio.to_thread(left_behind, server.process, before)
        checks.append(none("left behind", left, "nothing"))


async def cancelled(options: Options) -> list[Check]:
    """R8: calls that are cancelled at random instants. Their rows are free at once; others notice little."""
    checks: list[Check] = []
    chance = random.Random(options.seed)
    seconds = options.count(10_000, 600) / _LEAVING_RATE
    async with _crowd(checks, options) as crowd:
        first = len(crowd.stay.journal.entries)
        leave = partial(
            crowd.leave.open, _LEAVING_RATE, cancels_after=lambda: chance.uniform(0.0, _LONGEST_STAY_SECONDS)
        )
        await asyncio.gather(crowd.stays(seconds), leave(seconds))
        stayed = crowd.stay.journal.entries[first:]
        await leave(_LAST_SECONDS)  # with nobody else there
        limit = _QUICK_FREED_SECONDS if options.is_quick else _FREED_SECONDS
        freed_seconds = await _until_free(crowd, limit)
    counts = crowd.leave.journal.counts()
    checks += [
        none("journal of those who leave", crowd.leave.faults(["CANCELLED", "RESOURCE_EXHAUSTED"])),
        told("calls that were cancelled", f"{counts['CANCELLED']} of {counts.total()}"),
        at_most("rows are free after the last", freed_seconds, limit, " s"),
        *_of_those_who_stay(crowd, stayed, options),
    ]
    return checks


async def _until_free(crowd: Crowd, limit: float) -> float:
    """Waits until their rows are free; returns the seconds that took, little more than `limit` at most."""
    started = time.monotonic()
    while metric(crowd.server.process, "lane_rows_used") > _CANARY_ROWS and time.monotonic() - started < limit:
        await asyncio.sleep(0.005)
    return time.monotonic() - started


async def expired(options: Options) -> list[Check]:
    """R9: calls with deadlines that cannot hold. What is over costs no further step; others are answered."""
    checks: list[Check] = []
    chance = random.Random(options.seed)
    seconds = options.count(10_000, 600) / _LEAVING_RATE
    async with _crowd(checks, options) as crowd:
        first, rows, tokens = len(crowd.stay.journal.entries), crowd.rows(), crowd.tokens()
        await asyncio.gather(
            crowd.stays(seconds),
            crowd.leave.open(_LEAVING_RATE, seconds, timeout=lambda: chance.uniform(*_DEADLINES_SECONDS)),
        )
        stayed = crowd.stay.journal.entries[first:]
        rows, tokens = crowd.rows() - rows, crowd.tokens() - tokens
    counts = crowd.leave.journal.counts()
    num_good = sum(entry.is_good for entry in stayed)
    late_seconds = QUICK_LATE_SECONDS if options.is_quick else LATE_SECONDS
    faults = crowd.leave.faults(["DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"], late_seconds)
    checks += [
        none("journal of those who leave", faults),
        told("calls that expired", f"{counts['DEADLINE_EXCEEDED']} of {counts.total()}"),
        told("tokens decoded for nobody", f"{1.0 - tokens / max(rows, 1.0):.1%}"),
        Check("goodput of those who stay", f"{num_good} of {len(stayed)}", ">= 95 %", num_good >= 0.95 * len(stayed)),
        *_of_those_who_stay(crowd, stayed, options),
    ]
    return checks


def _of_those_who_stay(crowd: Crowd, stayed: list[Entry], options: Options) -> list[Check]:
    """Returns checks of those whom the others' leaving does not concern."""
    p99 = percentile([entry.latency for entry in stayed if entry.outcome == OK], 99)
    measured = f"{1000 * p99:.0f} ms, {p99 / crowd.calm_p99:.2f} of calm"
    is_quiet = not options.is_quick  # the quick part runs where other things run too
    num_refused = crowd.stay.journal.counts()[REFUSED]
    refused = f"{num_refused} of {len(crowd.stay.journal.entries)}"
    return [
        none("journal of those who stay", crowd.stay.faults([REFUSED])),
        Check("refused of those who stay", refused, "0", num_refused == 0),
        told("errors of those who stay", str(sorted(crowd.stay.details)) if crowd.stay.details else "none"),
        Check("p99 of those who stay", measured, "<= 1.5", p99 <= 1.5 * crowd.calm_p99 if is_quiet else None),
    ]


CASES = (
    Case("R8", "a storm of cancels", asynchronous(cancelled)),
    Case("R9", "a storm of deadlines that cannot hold", asynchronous(expired)),
)
