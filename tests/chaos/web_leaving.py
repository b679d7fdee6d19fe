"""W4: a server that is stopped or killed while callers over HTTP call."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tests.acceptance.report import Check
from tests.acceptance.server_process import free_ports
from tests.chaos.case import Case, Options, asynchronous, at_most, none
from tests.chaos.failpoints import SLEEP_SECONDS, Action, Point
from tests.chaos.http1 import CUT, connect_http
from tests.chaos.journal import OK
from tests.chaos.observations import is_healthy
from tests.chaos.servers import BrokenServer, Spec, broken_server
from tests.chaos.web_callers import HttpCallers

_RATE = 100.0  # calls a second
_SLOW = Spec(step_seconds=0.02)  # a quarter of a second a call
_DRAIN_DELAY_SECONDS, _GRACE_SECONDS = 3.0, 1.0
_LONG_CALLS = 8
_ANSWERS = 30  # before a kill


async def left(options: Options) -> list[Check]:
    """Runs SIGTERM under load, SIGTERM amid calls that are too long, and kill -9."""
    checks: list[Check] = []
    for cycle in range(options.count(8, 1)):
        checks += [check for check in await _terminated() if cycle == 0 or check.passed is False]
    checks += await _longer_than_grace()
    return checks + await _killed()


async def _terminated() -> list[Check]:
    """Callers go on until the server has ended: what was begun is answered, and what comes too late is told so."""
    async with _called(["--drain-delay", str(_DRAIN_DELAY_SECONDS)]) as (server, port, callers):
        load = asyncio.create_task(callers.open(_RATE, 30.0))
        await asyncio.sleep(1.5)
        stopping = asyncio.create_task(asyncio.to_thread(server.process.stop))
        await asyncio.sleep(0.5)
        is_ready = await asyncio.to_thread(is_healthy, server.process.host, port)
        num_before = len(callers.journal.entries)
        code = await stopping
        load.cancel()
        await callers.settled()
    entries, counts = callers.journal.entries, callers.journal.counts()
    num_early = sum(entry.outcome == OK for entry in entries[:num_before])
    return [
        Check(
            "SIGTERM: answered before the delay ended", f"{num_early} of {num_before}", "all", num_early == num_before
        ),
        none("SIGTERM: journal", callers.journal.faults([OK, CUT, "UNAVAILABLE"]), str(dict(counts))),
        # The kernel takes connections until the port closes, and resets those that nobody has accepted by then.
        at_most("SIGTERM: calls that came as the port closed, unanswered", counts[CUT], 2),
        Check("SIGTERM: /healthz", "200" if is_ready else "503", "503", not is_ready),
        Check("SIGTERM: exit code", str(code), "0", code == 0),
    ]


async def _longer_than_grace() -> list[Check]:
    """R4 over HTTP."""
    async with _called(["--drain-delay", "0", "--drain-timeout", str(_GRACE_SECONDS)]) as (server, _, callers):
        server.arm(Point.BEFORE_STEP, Action.SLEEP, -1)
        for _ in range(_LONG_CALLS):
            callers.start()
        await asyncio.sleep(1.0)
        started = time.perf_counter()
        code = await asyncio.to_thread(server.process.stop)
        seconds = time.perf_counter() - started
        await callers.settled()
    counts = callers.journal.counts()
    return [
        Check("too long: calls", str(dict(counts)), "all UNAVAILABLE", set(counts) == {"UNAVAILABLE"}),
        Check("too long: exit code", str(code), "0", code == 0),
        at_most("too long: time to exit", seconds, _GRACE_SECONDS + 2.0 * SLEEP_SECONDS + 3.0, " s"),
    ]


async def _killed() -> list[Check]:
    """R5 over HTTP: only calls that were under way have no answer, and those that come later find nobody."""
    async with _called([]) as (server, _, callers):
        load = asyncio.create_task(callers.open(_RATE, 30.0))
        while (num_good := sum(entry.is_good for entry in callers.journal.entries)) < _ANSWERS and not load.done():
            await asyncio.sleep(0.05)
        killed = time.perf_counter()
        server.process.process.kill()
        await asyncio.to_thread(server.process.process.wait)
        ended = time.perf_counter()
        await asyncio.sleep(1.0)
        load.cancel()
        await callers.settled()
    journal = callers.journal
    cut = [entry for entry in journal.entries if entry.outcome == CUT]
    num_others = sum(entry.ended < killed or entry.due > ended for entry in cut)
    return [
        none("kill -9: journal", journal.faults([OK, CUT, "UNAVAILABLE"]), str(dict(journal.counts()))),
        Check("kill -9: unanswered calls, not under way", f"{num_others} of {len(cut)}", "0", num_others == 0),
        Check("kill -9: answers before it", f"{num_good}", f">= {_ANSWERS}", num_good >= _ANSWERS),
    ]


@asynccontextmanager
async def _called(flags: Sequence[str]) -> AsyncIterator[tuple[BrokenServer, int, HttpCallers]]:
    """A server, its port of HTTP and its callers."""
    [port] = free_ports(1)
    with broken_server(_SLOW, ["--http-port", str(port), *flags]) as server:
        connection = await connect_http(f"{server.process.host}:{port}")
        yield server, port, HttpCallers(connection)
        connection.close()


CASES = (Case("W4", "SIGTERM and kill -9 under load, over HTTP", asynchronous(left)),)
