"""O1: the alerts that are shipped, in a real Prometheus and Alertmanager: which fire for a fault, and which do not.

Time of the rules runs faster by one factor (`tests.chaos.watching`). Every alert has a fault
(`tests.chaos.alert_faults`) for which it must fire. Only what follows from the same fault may fire besides.
"""

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager

from tests.acceptance.report import Check
from tests.acceptance.server_process import ServerProcess
from tests.chaos.alert_faults import CALM_RATE, FAULTS, Fault
from tests.chaos.case import Case, Options, asynchronous, none, told
from tests.chaos.clients import clients
from tests.chaos.requests import keyed_requests
from tests.chaos.servers import broken_server
from tests.chaos.watching import FACTOR, RULES, watched

_SPARE_SECONDS = 15.0  # to be scraped, evaluated and sent
_AFTER_SECONDS = 5.0
_SCRAPED_SECONDS = 8.0  # of calls, before a fault
_TIMEOUT_SECONDS = 10.0
_AT_ONCE = 3  # faults; more, and two cores have no time for them


async def alerted(options: Options) -> list[Check]:
    """Nothing fires in calm (R1); each fault calls by its alerts, in time, and by no other."""
    faults = FAULTS[:1] if options.is_quick else FAULTS
    room, turn = asyncio.Semaphore(_AT_ONCE), asyncio.Lock()
    calm = await _calm(options.count(180, 20))
    struck = await asyncio.gather(*(_struck(fault, room, turn) for fault in faults))
    unfired = set(re.findall(r"alert: (\w+)", RULES.read_text())) - {
        each for fault in faults for each in fault.expected
    }
    return [
        told("an hour of the rules lasts", f"{3600 / FACTOR:g} s"),
        *calm,
        *([] if options.is_quick else [none("alerts that no fault is for", sorted(unfired))]),
        *[check for checks in struck for check in checks],
    ]


async def _calm(seconds: int) -> list[Check]:
    with broken_server() as server, watched([server.process.metrics_port]) as (pager, prometheus):
        async with called([server.process], CALM_RATE):
            await asyncio.sleep(seconds)
            targets = prometheus.get("targets")["activeTargets"]
    health = [each["health"] for each in targets]
    return [
        none(f"R1, {seconds} s of calm: alerts", sorted(pager.alerts)),
        Check("scraped", str(health), "['up']", health == ["up"]),
    ]


async def _struck(fault: Fault, room: asyncio.Semaphore, turn: asyncio.Lock) -> list[Check]:
    over = threading.Event()
    async with room:
        with ExitStack() as stack:
            async with turn:  # a starting server slows down the watched servers
                scene = await asyncio.to_thread(stack.enter_context, fault.scene())
                watching = watched([server.metrics_port for server in scene.servers])
                pager, _ = await asyncio.to_thread(stack.enter_context, watching)
            async with called(scene.servers, fault.rate):
                await asyncio.sleep(_SCRAPED_SECONDS)
                started = time.monotonic()
                striking = asyncio.create_task(asyncio.to_thread(scene.strike, over))
                most = fault.within + _SPARE_SECONDS
                while not fault.expected <= pager.alerts and time.monotonic() - started < most:
                    await asyncio.sleep(0.2)
                seconds = time.monotonic() - started
                await asyncio.sleep(_AFTER_SECONDS)  # what else there may be
                over.set()
                await striking
            await asyncio.to_thread(stack.close)
    missing = sorted(fault.expected - pager.alerts)
    return [
        Check(
            f"{fault.name}: {', '.join(sorted(fault.expected))}",
            f"not in {seconds:.0f} s: {', '.join(missing)}" if missing else f"after {seconds:.0f} s",
            f"<= {most:g} s",
            not missing,
        ),
        none(
            f"{fault.name}: other alerts",
            sorted(pager.alerts - fault.expected - fault.allowed),
            ", ".join(sorted(pager.alerts - fault.expected)) or "none",
        ),
    ]


@asynccontextmanager
async def called(servers: Sequence[ServerProcess], rate: float) -> AsyncIterator[None]:
    """Calls to servers all the while, so many a second, whatever becomes of them."""
    if not rate:
        yield
        return
    over = asyncio.Event()
    addresses = [server.address for server in servers]
    async with clients(addresses, keyed_requests(200), checks_health=False) as client:
        load = asyncio.create_task(client.open(rate, 3600.0, timeout=lambda: _TIMEOUT_SECONDS, until=over))
        try:
            yield
        finally:
            over.set()
            await load


CASES = (Case("O1", "alerts, in a real Prometheus and Alertmanager", asynchronous(alerted)),)
