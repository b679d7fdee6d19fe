"""Served load: Poisson arrivals against both live servers, at shares of what the weaker one can do."""

import dataclasses
from typing import Any

from tests.bench.callers import OBJECTIVE_SECONDS, Callers, divide_cores, pinned
from tests.bench.models import Model
from tests.bench.record import Row, rows_of
from tests.bench.report import print_rows
from tests.bench.servers import Server, ctranslate2_server, our_server
from tests.bench.systems import Settings

_SHARES = (0.3, 0.6, 0.8, 0.95)
_HEADLINE_SHARE = 0.8
_CAPACITY = "sentences/s"
_HIGHEST = "sentences/s with p95 <= 1 s"
_RATE_STEP = 1.1
_MAX_STEPS = 12


def compare_served(model: Model, ours: Settings, theirs: Settings, beam_size: int, *, quick: bool) -> list[Row]:
    """Runs the served load and prints its tables; returns all that was measured.

    Where there are three cores or more, the load generator has one to itself; on two it shares them with the servers,
    the same for both.
    """
    seconds = 5.0 if quick else 30.0
    server_cores, client_cores = divide_cores()
    ours, theirs = (dataclasses.replace(each, workers=min(each.workers, len(server_cores))) for each in (ours, theirs))
    with pinned(server_cores):
        stack = our_server(ours), ctranslate2_server(theirs, model.bundle)
        with stack[0] as first, stack[1] as second:
            with pinned(client_cores):
                clients = [Callers(server, model.text.lines, beam_size) for server in (first, second)]
            capacity = [client.closed(seconds) for client in clients]
            weaker = min(capacity)
            levels = {share: [client.open(share * weaker, seconds) for client in clients] for share in _SHARES}
            highest = [_highest_rate(client, 0.95 * weaker, seconds, quick) for client in clients]
            for client in clients:
                client.close()
    facts: dict[str, Any] = {"section": "served", "model": model.name, "settings": (str(ours), str(theirs))}
    rows = rows_of({_CAPACITY: capacity[:1]}, {_CAPACITY: capacity[1:]}, setting="closed loop, 64 callers", **facts)
    for share, (ours_then, theirs_then) in levels.items():
        setting = f"served, {share:.0%} load, {share * weaker:.1f}/s"
        rows += rows_of(
            ours_then, theirs_then, ["p95 ms"] if share == _HEADLINE_SHARE else [], setting=setting, **facts
        )
    ours_overall, theirs_overall = (
        {_HIGHEST: [rate], "padding %": [100 * _padding_share(server)], "peak MB": [server.peak_bytes / 1e6]}
        for rate, server in zip(highest, (first, second), strict=True)
    )
    rows += rows_of(ours_overall, theirs_overall, [_HIGHEST], setting="served", **facts)
    print_rows("Served load, as a share of the weaker server's capacity", rows)
    return rows


def _highest_rate(client: Callers, start: float, seconds: float, quick: bool) -> float:
    """Returns the highest rate tried whose p95 is within the objective; 0 if not even a fifth of `start` is."""
    rate, best = start, 0.0
    for _ in range(2 if quick else _MAX_STEPS):
        result = client.open(rate, seconds)
        if not result["failed"][0] and result["p95 ms"][0] <= 1000 * OBJECTIVE_SECONDS:
            best, rate = rate, rate * _RATE_STEP
        elif best or rate < start / 5:
            break
        else:
            start = rate = rate / _RATE_STEP
    return best


def _padding_share(server: Server) -> float:
    return 1 - server.counts[0] / server.counts[1]
