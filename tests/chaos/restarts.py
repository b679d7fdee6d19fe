"""R3, R4, R5: servers that are stopped, and servers that are killed, while calls come in."""

import asyncio
import random
import time
from collections.abc import Callable

from tests.acceptance.report import Check
from tests.chaos.callers import percentile
from tests.chaos.case import Case, Options, asynchronous, at_most, none, told
from tests.chaos.clients import Clients, clients
from tests.chaos.failpoints import SLEEP_SECONDS, Action, Point
from tests.chaos.journal import OK
from tests.chaos.requests import keyed_requests
from tests.chaos.servers import Replicas, Spec, broken_server, replicas

_RATE = 100.0  # calls a second
_DRAIN_DELAY_SECONDS = 3.0
_SLOW = Spec(step_seconds=0.02)  # a quarter of a second a call: a dozen are under way in each replica
MAX_ATTEMPTS = 4
_GRACE_SECONDS = 1.0
_LONG_CALLS = 8


async def under_load(client: Clients, cycles: Callable[[], None]) -> None:
    """Calls all the while that another thread stops and starts servers."""
    is_over = asyncio.Event()
    load = asyncio.create_task(client.open(_RATE, 3600.0, until=is_over))
    try:
        await asyncio.to_thread(cycles)
    finally:
        is_over.set()
        await load


async def terminated(options: Options) -> list[Check]:
    """R3: rolling SIGTERMs. No caller may notice."""
    return [
        *await _terminated("with retries", MAX_ATTEMPTS, options.count(50, 2)),
        *await _terminated("without retries", 1, options.count(10, 2)),
    ]


async def _terminated(name: str, max_attempts: int, num_cycles: int) -> list[Check]:
    codes: list[int] = []

    def cycles(group: Replicas) -> None:
        for cycle in range(num_cycles):
            codes.append(group.servers[cycle % 2].stop())
            group.start(cycle % 2).wait_until_serving()
            time.sleep(0.5)  # clients come back to it

    flags = ["--drain-delay", str(_DRAIN_DELAY_SECONDS)]
    with replicas(2, _SLOW, flags) as group:
        async with clients(group.addresses, keyed_requests(1000), max_attempts=max_attempts) as client:
            await under_load(client, lambda: cycles(group))
    failed = [entry for entry in client.journal.entries if entry.outcome != OK]
    return [
        Check(f"{name}: errors", f"{len(failed)} of {len(client.journal.entries)}", "0", not failed),
        none(f"{name}: journal", client.faults([])),
        told(f"{name}: errors said", str(sorted(client.details)) if failed else "nothing"),
        Check(f"{name}: exit codes of {num_cycles}", str(sorted(set(codes))), "all 0", set(codes) == {0}),
    ]


async def longer_than_grace(options: Options) -> list[Check]:
    """R4: SIGTERM amid calls that take longer than the server may wait for them."""
    with broken_server(flags=["--drain-timeout", str(_GRACE_SECONDS)]) as server:
        server.arm(Point.BEFORE_STEP, Action.SLEEP, -1)
        async with clients([server.address], keyed_requests(_LONG_CALLS)) as client:
            calls = [asyncio.create_task(client.call(timeout=60.0)) for _ in range(_LONG_CALLS)]
            await asyncio.sleep(1.0)
            started = time.perf_counter()
            code = await asyncio.to_thread(server.process.stop)
            seconds = time.perf_counter() - started
            await asyncio.gather(*calls)
    return [
        none("journal", client.faults(["UNAVAILABLE"])),
        Check(
            "calls",
            str(dict(client.journal.counts())),
            "all UNAVAILABLE",
            set(client.journal.counts()) == {"UNAVAILABLE"},
        ),
        Check("exit code", str(code), "0", code == 0),
        at_most("time to exit", seconds, _GRACE_SECONDS + 2.0 * SLEEP_SECONDS + 3.0, " s"),
    ]


async def killed(options: Options) -> list[Check]:
    """R5: kill -9. With retries no caller notices; without, only those whose calls were under way."""
    checks: list[Check] = []
    chance = random.Random(options.seed)
    for max_attempts, num_cycles in ((MAX_ATTEMPTS, options.count(50, 3)), (1, options.count(10, 2))):
        lost_seconds: list[float] = []

        def cycles(group: Replicas, num_cycles: int = num_cycles, lost: list[float] = lost_seconds) -> None:
            for cycle in range(num_cycles):
                time.sleep(chance.uniform(0.3, 0.8))
                victim = group.servers[cycle % 2].process
                victim.kill()
                victim.wait()
                at = time.perf_counter()
                group.start(cycle % 2).wait_until_serving()
                lost.append(time.perf_counter() - at)

        with replicas(2) as group:
            async with clients(group.addresses, keyed_requests(1000), max_attempts=max_attempts) as client:
                await under_load(client, lambda group=group, cycles=cycles: cycles(group))  # type: ignore[misc]
        name = "with retries" if max_attempts > 1 else "without retries"
        num_failed = sum(entry.outcome != OK for entry in client.journal.entries)
        bar = 0 if max_attempts > 1 else num_cycles * _MOST_IN_FLIGHT
        checks += [
            Check(f"{name}: errors", f"{num_failed} of {len(client.journal.entries)}", f"<= {bar}", num_failed <= bar),
            none(f"{name}: journal", client.faults(["UNAVAILABLE"])),
            told(f"{name}: errors said", str(sorted(client.details)) if num_failed else "nothing"),
            told(f"{name}: back to SERVING", f"p50 {percentile(lost_seconds, 50):.1f}, most {max(lost_seconds):.1f} s"),
        ]
    return checks


# Of one replica at this rate: calls take 50 ms, a second where the machine is busy.
_MOST_IN_FLIGHT = int(_RATE / 2)

CASES = (
    Case("R3", "SIGTERM under load, two replicas", asynchronous(terminated)),
    Case("R4", "SIGTERM amid calls longer than the grace", asynchronous(longer_than_grace)),
    Case("R5", "kill -9 under load, two replicas", asynchronous(killed)),
)
