"""W3: hostile callers over HTTP. Others, over HTTP and gRPC, notice little; nothing is left; no answer is a 500.

Connections that are idle, and heads and bodies that come slowly, cost nearly nothing, so they have a bar of their own.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable

from tests.acceptance.report import Check
from tests.acceptance.server_process import free_ports
from tests.chaos.callers import percentile
from tests.chaos.case import Case, Options, asynchronous, at_most, none, told
from tests.chaos.clients import Clients, clients
from tests.chaos.http1 import connect_http
from tests.chaos.journal import OK
from tests.chaos.observations import left_behind, resident_mib, resources
from tests.chaos.requests import keyed_requests
from tests.chaos.servers import BrokenServer, broken_server
from tests.chaos.web_attacks import ATTACKS, MOST_SLOW, Target, attack, tried
from tests.chaos.web_callers import HttpCallers
from tests.chaos.web_shapes import Shape, post, shapes

_RATE = 20.0  # calls a second, of each front
_CONNECTIONS = 2000
_CHEAP = ("idle connections", "slow heads and bodies")
_MOST_SLOWER, _MOST_SLOWER_OF_CHEAP = 2.0, 1.3
_CHEAP_SECONDS = 3.0  # times as long as the others: p95 of few calls scatters by more than their bar
_MOST_GROWTH_MIB, _MOST_LOG_BYTES = 256.0, 3 << 20  # the log has a line for each call, honest ones too
_OPENING_SECONDS = 25.0  # at most, where an attacker that is nice gets little of a busy processor
_SHAPES_AT_ONCE = 16
_SLACK_SECONDS = 0.025  # where calm is a few milliseconds, a body of 8 MiB that is legal takes the loop for longer


async def attacked(options: Options) -> list[Check]:
    """Measures calm, then each attack, and what is left when all have gone."""
    [port] = free_ports(1)
    seconds = float(options.count(8, 1))
    checks: list[Check] = []
    with broken_server(flags=["--http-port", str(port)]) as server:
        checks += await _shapes_are_refused(server, port)
        connection = await connect_http(f"{server.process.host}:{port}")
        http = HttpCallers(connection)
        async with clients([server.address], keyed_requests(500)) as grpc:
            await _honest(grpc, http, 1.0)
            calm = await _honest(grpc, http, _CHEAP_SECONDS * seconds)
            before = resources(server.pid)
            peak = 0.0
            for name in ATTACKS:
                connections = options.count(_CONNECTIONS, 200)
                lasts = _CHEAP_SECONDS * seconds if name in _CHEAP else seconds
                more = 5.0 + _OPENING_SECONDS if name in _CHEAP else 2.0
                target = Target(server.process.host, port, connections, lasts + more)
                process = multiprocessing.get_context("spawn").Process(target=attack, args=(name, target), daemon=True)
                process.start()
                await asyncio.sleep(1.5)  # until it has begun, and the connections of the one before are gone
                opened = await _opened(name, connections, lambda: resources(server.pid).num_files - before.num_files)
                during = await _honest(grpc, http, lasts)
                peak = max(peak, resident_mib(server.pid))
                process.terminate()
                await asyncio.to_thread(process.join)
                checks += [*_slower(name, calm, during, options), *opened]
        connection.close()  # it has as many as its busiest moment needed
        left = await asyncio.to_thread(left_behind, server.process, before, 30.0)
        log = server.process.stderr()
    return [
        *checks,
        none("journal of honest callers over gRPC", grpc.faults([])),
        none("journal of honest callers over HTTP", http.journal.faults([OK])),
        at_most("memory taken", peak - before.resident_bytes / 2**20, _MOST_GROWTH_MIB, " MiB"),
        none("left behind, 30 s after they left", left, "nothing"),
        at_most("log", len(log) / 2**20, _MOST_LOG_BYTES / 2**20, " MiB"),
        none("errors in the log", [line[:200] for line in log.splitlines() if '"level": "error"' in line.lower()][:3]),
    ]


async def _honest(grpc: Clients, http: HttpCallers, seconds: float) -> dict[str, float]:
    """Returns the p95 of honest callers by front, in seconds."""
    first = {"gRPC": len(grpc.journal.entries), "HTTP": len(http.journal.entries)}
    await asyncio.gather(grpc.open(_RATE, seconds), http.open(_RATE, seconds))
    journals = {"gRPC": grpc.journal, "HTTP": http.journal}
    return {
        name: percentile([entry.latency for entry in journal.entries[first[name] :]], 95)
        for name, journal in journals.items()
    }


def _slower(name: str, calm: dict[str, float], during: dict[str, float], options: Options) -> list[Check]:
    checks = []
    for front, p95 in during.items():
        measured = f"{1000 * p95:.0f} ms, {p95 / calm[front]:.2f} of calm's {1000 * calm[front]:.0f} ms"
        most, slack = (_MOST_SLOWER_OF_CHEAP, 0.0) if name in _CHEAP else (_MOST_SLOWER, _SLACK_SECONDS)
        passed = p95 <= max(most * calm[front], calm[front] + slack)
        checks.append(
            Check(f"{name}: p95 over {front}", measured, f"<= {most:g}", None if options.is_quick else passed)
        )
    return checks


async def _opened(name: str, num_wanted: int, count: Callable[[], int]) -> list[Check]:
    """Waits until all connections of an attack are open, before others call, and says whether they are."""
    if name not in _CHEAP:
        return []
    least = min(num_wanted, MOST_SLOW) if name == _CHEAP[1] else num_wanted
    deadline = time.monotonic() + _OPENING_SECONDS
    while (num_open := count()) < least and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    return [Check(f"{name}: connections", str(num_open), f">= {least}", num_open >= least)]


async def _shapes_are_refused(server: BrokenServer, port: int) -> list[Check]:
    """Sends each shape, and a good request after it."""
    at_once = asyncio.Semaphore(_SHAPES_AT_ONCE)

    async def send(shape: Shape) -> str | None:
        async with at_once:
            status = await tried(server.process.host, port, shape.data)
        return None if status in shape.statuses else f"{shape.name}: {status}"

    told_of = await asyncio.gather(*map(send, shapes()))
    good = post("/v1/translate", b'{"contents": ["red bridge"], "targetLanguageCode": "de"}')
    status = await tried(server.process.host, port, good)
    return [
        none("shapes that are not refused", filter(None, told_of)),
        told("shapes", str(len(told_of))),
        Check("a good request after them", str(status), "200", status == 200),
    ]


CASES = (Case("W3", "hostile callers over HTTP", asynchronous(attacked)),)
