"""Served load: Poisson arrivals against both live servers, or ours alone, at shares of what the weaker one can do."""

import dataclasses
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from tests.bench.callers import OBJECTIVE_SECONDS, Callers, divide_cores, pinned
from tests.bench.models import Model
from tests.bench.record import Figures, Row, rows_of
from tests.bench.report import print_rows
from tests.bench.servers import Server, ctranslate2_server, our_server
from tests.bench.systems import Settings

_SHARES = (0.3, 0.6, 0.8, 0.95)
_HEADLINE_SHARE = 0.8
_CAPACITY = "sentences/s"
_HIGHEST = "sentences/s with p95 <= 1 s"
_RATE_STEP = 1.1
_MAX_STEPS = 12


def compare_served(
    model: Model, ours: Settings, theirs: Settings | None, beam_size: int, seconds: float, *, quick: bool
) -> list[Row]:
    """Runs the served load and prints its tables; returns all that was measured.

    Where there are three cores or more, the load generator has one to itself; on two it shares them with the servers,
    the same for both.

    Args:
        model: that both serve.
        ours: settings of our server.
        theirs: of CTranslate2's; None where there is none: then the load is shares of what ours can do.
        beam_size: of every search.
        seconds: of each level.
        quick: whether to look for the highest rate in two steps.
    """
    server_cores, client_cores = divide_cores()
    settings = [
        dataclasses.replace(each, workers=min(each.workers, len(server_cores))) for each in (ours, theirs) if each
    ]
    with pinned(server_cores), ExitStack() as stack:
        servers = [stack.enter_context(our_server(settings[0]))]
        servers += [stack.enter_context(ctranslate2_server(each, model.bundle)) for each in settings[1:]]
        with pinned(client_cores):
            clients = [Callers(server, model.text.lines, beam_size) for server in servers]
        capacity = [client.closed(seconds) for client in clients]
        weaker = min(capacity)
        levels = {share: [client.open(share * weaker, seconds) for client in clients] for share in _SHARES}
        highest = [highest_rate(client, 0.95 * weaker, seconds, 2 if quick else _MAX_STEPS) for client in clients]
        for client in clients:
            client.close()
    facts: dict[str, Any] = {"section": "served", "model": model.name, "settings": tuple(map(str, settings))}
    rows = _rows([{_CAPACITY: [each]} for each in capacity], setting="closed loop, 64 callers", **facts)
    for share, figures in levels.items():
        setting = f"served, {share:.0%} load, {share * weaker:.1f}/s"
        headlines = ["p95 ms"] if share == _HEADLINE_SHARE else []
        rows += _rows(figures, headlines, setting=setting, **facts)
    overall = [
        {_HIGHEST: [rate], "padding %": [100 * _padding_share(server)], "peak MB": [server.peak_bytes / 1e6]}
        for rate, server in zip(highest, servers, strict=True)
    ]
    rows += _rows(overall, [_HIGHEST], setting="served", **facts)
    print_rows("Served load, as a share of the weaker server's capacity", rows)
    return rows


def _rows(figures: Sequence[Figures], headlines: Sequence[str] = (), **facts: Any) -> list[Row]:
    """Returns rows of our figures, beside the other's if there are any."""
    return rows_of(figures[0], figures[1] if len(figures) > 1 else None, headlines, **facts)


def highest_rate(client: Callers, start: float, seconds: float, steps: int = _MAX_STEPS) -> float:
    """Returns the highest rate tried whose p95 is within the objective; 0 if not even a fifth of `start` is."""
    rate, best = start, 0.0
    for _ in range(steps):
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
