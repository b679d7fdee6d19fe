"""R1: what the server does with ease, for as long as one likes: no error, and memory that stays flat."""

import asyncio
import time

import numpy as np

from tests.acceptance.report import Check
from tests.acceptance.server_process import ServerProcess, running_server
from tests.chaos.callers import percentile
from tests.chaos.case import Case, Options, asynchronous, at_most, none, told
from tests.chaos.clients import clients
from tests.chaos.observations import left_behind, resources
from tests.chaos.requests import golden_requests
from tests.chaos.servers import FLAGS

_LOAD = 0.6  # of saturation
_CALLERS = 16
_CROWD = 64  # callers that fill all rows at beam 4
_CROWD_SECONDS = 60
_SATURATION_SECONDS = 5.0
_SAMPLE_SECONDS = 1.0
_TIMEOUT_SECONDS = 60.0
_SETTLED = 0.25  # of the time, after which memory has to be flat
_MOST_GROWTH = 20 << 20
_MOST_SLOPE = 1 << 20  # bytes an hour
_LONG_SECONDS = 1200.0  # what a slope needs


async def steady(options: Options) -> list[Check]:
    """R1: the real model at 60 % of what it can do."""
    seconds = 6.0 if options.is_quick else options.seconds
    with running_server(FLAGS) as server:
        requests = golden_requests(server.address, options.count(200, 30), beam_size=4, seed=options.seed)
        async with clients([server.address], requests, beam_size=4) as client:
            await client.closed(_CALLERS, _SATURATION_SECONDS, timeout=_TIMEOUT_SECONDS)
            rate = _LOAD * len(client.journal.entries) / _SATURATION_SECONDS
            # Wider batches take more memory once, and on a virtual machine that is slow for a minute they come by
            # themselves: what grows from here on is not that.
            await client.closed(_CROWD, options.count(_CROWD_SECONDS, 2), timeout=_TIMEOUT_SECONDS)
            before, first = resources(server.process.pid), len(client.journal.entries)
            over = asyncio.Event()
            sampling = asyncio.create_task(_sample_memory(server, over))
            await client.open(rate, seconds, timeout=lambda: _TIMEOUT_SECONDS)
            over.set()
            samples = await sampling
        left = await asyncio.to_thread(left_behind, server, before)
    entries = client.journal.entries[first:]
    latencies = [entry.latency for entry in entries]
    growth, slope = _growth(samples)
    is_long = seconds >= _LONG_SECONDS
    return [
        none("journal", client.faults([])),
        told("calls", f"{len(entries)}, {len(entries) / seconds:.1f} a second"),
        told("latency", ", ".join(f"p{p:g} {1000 * percentile(latencies, p):.0f} ms" for p in (50, 99, 99.9))),
        told("resident, mean of each sixth", ", ".join(f"{each / 2**20:.1f}" for each in _means(samples)) + " MiB"),
        at_most("last quarter over the second", growth / 2**20, _MOST_GROWTH / 2**20, " MiB"),
        Check(
            "slope of the last 75 %",
            f"{slope / 2**20:.1f} MiB/h",
            f"<= {_MOST_SLOPE / 2**20:g} MiB/h" if is_long else "",
            slope <= _MOST_SLOPE if is_long else None,
        ),
        none("left behind", left, "nothing"),
    ]


async def _sample_memory(server: ServerProcess, over: asyncio.Event) -> list[tuple[float, int]]:
    samples: list[tuple[float, int]] = []
    while not over.is_set():
        samples.append((time.monotonic(), resources(server.process.pid).resident_bytes))
        await asyncio.sleep(_SAMPLE_SECONDS)
    return samples


def _means(samples: list[tuple[float, int]]) -> list[float]:
    return [float(part.mean()) for part in np.array_split(np.array(samples)[:, 1], 6) if len(part)]


def _growth(samples: list[tuple[float, int]]) -> tuple[float, float]:
    """Returns bytes from the second quarter to the last, and bytes an hour by least squares once it has settled."""
    settled = np.array(samples[int(_SETTLED * len(samples)) :])
    third = max(1, len(settled) // 3)
    growth = settled[-third:, 1].mean() - settled[:third, 1].mean()
    slope = np.polyfit(settled[:, 0] - settled[0, 0], settled[:, 1], 1)[0] * 3600 if len(settled) > 2 else 0.0
    return float(growth), float(slope)


CASES = (Case("R1", "steady load", asynchronous(steady)),)
