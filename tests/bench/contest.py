"""What two checkouts are compared on, and the comparisons of their live servers."""

import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from babelserve import Client
from server.models.machine import usable_cores
from tests.bench.callers import Callers, divide_cores, pinned
from tests.bench.record import Row, rows_of
from tests.bench.report import print_rows
from tests.bench.rounds import turns
from tests.bench.servers import our_server
from tests.bench.systems import Settings, peak_resident_bytes, resident_bytes
from tests.bench.text import Text

_LOAD = 0.8  # of the weaker server's capacity
_REPEATS = 8  # of a server's calls, after once to warm it up
_SINGLES = 100  # sentences that are asked for one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What is compared: this checkout, called "ours", and the other, called by its commit.

    Attributes:
        name: of the model.
        bundle: of the model.
        text: that is translated.
        checkouts: by name.
        rounds: of each comparison.
        quick: whether little shall be measured.
    """

    name: str
    bundle: Path
    text: Text
    checkouts: dict[str, Path]
    rounds: int
    quick: bool

    @property
    def other(self) -> str:
        """The other's name."""
        return next(name for name in self.checkouts if name != "ours")

    def settings(self, variant: str = "cpu-int8", *, shortlist: bool = False) -> dict[str, Settings]:
        """Returns how each side runs: by the defaults of its own server."""
        path, lanes = str(self.bundle), usable_cores()
        return {
            name: Settings(
                system="ours",
                path=path,
                precision=variant,
                workers=lanes,
                batch=0,
                shortlist=shortlist,
                checkout=str(checkout),
            )
            for name, checkout in self.checkouts.items()
        }


def compare_served(contest: Contest) -> list[Row]:
    """Compares live servers under the same Poisson arrivals, others in every round."""
    seconds = 5.0 if contest.quick else 30.0
    figures: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in contest.checkouts}
    server_cores, client_cores = divide_cores()
    with pinned(server_cores), ExitStack() as stack:
        servers = {name: stack.enter_context(our_server(each)) for name, each in contest.settings().items()}
        with pinned(client_cores):
            callers = {name: Callers(server, contest.text.lines, 1) for name, server in servers.items()}
        rate = _LOAD * min(each.closed(seconds) for each in callers.values())
        for number, name in turns(list(callers), contest.rounds):
            found = callers[name].open(rate, seconds, seed=number + 2)
            for measure, values in found.items() if number >= 0 else ():
                figures[name][measure] += values
        for each in callers.values():
            each.close()
    setting = f"served, {_LOAD:.0%} load, {rate:.1f}/s"
    return _rows(contest, figures, "served", setting, ("p95 ms", "goodput/s"))


def compare_calls(contest: Contest) -> list[Row]:
    """Compares one caller's calls, greedily: a sentence each, and all of the text in one.

    Two servers are started in every round and take turns within seconds, as a noisy host slows down for minutes.
    """
    figures: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in contest.checkouts}
    settings, lines = contest.settings(), contest.text.lines[: 20 if contest.quick else 250]
    singles = [[line] for line in lines[:_SINGLES]]
    for order in range(contest.rounds):
        found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in settings}
        started = list(settings.items())[:: -1 if order % 2 else 1]  # the first of two has been the slower one
        with ExitStack() as stack:
            servers = {name: stack.enter_context(our_server(each)) for name, each in started}
            clients = {name: stack.enter_context(Client(server.address)) for name, server in servers.items()}
            for number, name in turns(list(clients), _REPEATS):
                rates = {
                    "single sentences/s": len(singles) / _seconds(clients[name], singles),
                    "sentences/s in one call": len(lines) / _seconds(clients[name], [lines]),
                }
                for measure, rate in rates.items() if number >= 0 else ():
                    found[name][measure].append(rate)
        for name, of_round in found.items():
            for measure, values in of_round.items():
                figures[name][measure].append(median(values))
    return _rows(
        contest, figures, "calls", "one caller, int8 greedy", ("single sentences/s", "sentences/s in one call")
    )


def compare_start(contest: Contest) -> list[Row]:
    """Compares the seconds from the start of a server's process to health SERVING."""
    figures: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in contest.checkouts}
    settings = contest.settings()
    for number, name in turns(list(settings), contest.rounds):
        with our_server(settings[name]) as server:
            if number >= 0:
                figures[name]["seconds to SERVING"].append(server.seconds_to_serving)
    return _rows(contest, figures, "start", "server", ("seconds to SERVING",))


def compare_memory(contest: Contest) -> list[Row]:
    """Compares a server's memory when it serves, and after a closed loop of 64 callers."""
    figures: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in contest.checkouts}
    settings = contest.settings()
    for number, name in turns(list(settings), contest.rounds):
        with our_server(settings[name]) as server:
            found = {"resident MB when SERVING": resident_bytes(server.pid)}
            callers = Callers(server, contest.text.lines, 1)
            callers.closed(5.0 if contest.quick else 20.0)
            callers.close()
            found["resident MB after load"] = resident_bytes(server.pid)
            found["peak MB"] = peak_resident_bytes(server.pid)
            for measure, value in found.items() if number >= 0 else ():
                figures[name][measure].append(value / 1e6)
    return _rows(contest, figures, "memory", "server", ("resident MB when SERVING", "resident MB after load"))


def _seconds(client: Client, calls: list[list[str]]) -> float:
    started = time.perf_counter()
    for call in calls:
        client.translate(call, target="de", beam_size=1, with_scores=False)
    return time.perf_counter() - started


def _rows(
    contest: Contest,
    figures: dict[str, dict[str, list[float]]],
    section: str,
    setting: str,
    headlines: tuple[str, ...],
) -> list[Row]:
    rows = rows_of(
        figures["ours"],
        figures[contest.other],
        headlines,
        section=section,
        model=contest.name,
        setting=setting,
        against=contest.other,
        rounds=contest.rounds,
    )
    print_rows(f"{contest.name}, {setting}: medians of {contest.rounds} rounds", rows)
    return rows
