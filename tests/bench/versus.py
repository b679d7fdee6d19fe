"""`python -m tests.bench.versus OTHER_CHECKOUT`: this checkout's engine and server against another's, by turns.

The other checkout is one of the same repository, such as `git worktree add ../other COMMIT` makes. Its code runs in
processes of its own, by this interpreter, on the bundles that this checkout writes. Both run with their own defaults.
Ratios are ours to theirs.

`ids` (fp32 and int8, greedy and beam 4, without and with the shortlist) and `offline` take every model named, the other
sections the first one: `latency` is one sentence at a time, `served` Poisson arrivals at 80 % of the weaker server's
capacity, others in every round, `start` the seconds to health SERVING, and `memory` what a server has resident then,
and after a closed loop of 64 callers.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from server.models.machine import usable_cores
from tests.bench.callers import Callers, divide_cores, pinned
from tests.bench.ids import DIFFERENT
from tests.bench.machine import describe_machine, versions
from tests.bench.models import MODELS, Model, prepare
from tests.bench.record import Row, commit_of, new_record, rows_of
from tests.bench.report import print_rows, print_table
from tests.bench.rounds import Setting, compare, turns
from tests.bench.servers import our_server
from tests.bench.summary import summarize
from tests.bench.systems import Settings, peak_resident_bytes, resident_bytes
from tests.bench.text import BUILTIN_CHECKPOINT, DEFAULT_TEXT, ROOT
from tests.bench.worker import Worker

_SPEED = ("tokens/s", "CPU s/1000 tokens")
_LOAD = 0.8  # of the weaker server's capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What is compared: this checkout, called "ours", and the other, called by its commit.

    Attributes:
        model: on whose bundle.
        checkouts: by name.
        rounds: of each comparison.
        quick: whether little shall be measured.
    """

    model: Model
    checkouts: dict[str, Path]
    rounds: int
    quick: bool

    @property
    def other(self) -> str:
        """The other's name."""
        return next(name for name in self.checkouts if name != "ours")

    def settings(self, variant: str = "cpu-int8", *, shortlist: bool = False) -> dict[str, Settings]:
        """Returns how each side runs: by the defaults of its own server."""
        path, lanes = str(self.model.bundle.directory), usable_cores()
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


def main() -> None:
    """Entry point."""
    arguments = _parse()
    if arguments.threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])  # workers and servers inherit it
    machine = describe_machine()
    print_table("Machine", ["what", "value"], [*machine.items(), *versions().items()])
    checkouts = {"ours": ROOT, commit_of(arguments.other): arguments.other}
    rows: list[Row] = []
    for name in arguments.model:
        model = prepare(
            name, arguments.text, arguments.work, arguments.checkpoint, arguments.seed, with_ctranslate2=False
        )
        contest = Contest(model=model, checkouts=checkouts, rounds=arguments.rounds, quick=arguments.quick)
        print(f"\n## {name}: {commit_of(ROOT)} against {contest.other}", flush=True)
        for section in arguments.only:
            if name == arguments.model[0] or section in _EVERY_MODEL:
                rows += SECTIONS[section](contest)
                new_record(machine, rows).write(arguments.out)
    print(f"\n{summarize([new_record(machine, rows)])}\nAll numbers: {arguments.out}")


def compare_ids(contest: Contest) -> list[Row]:
    """Counts the sentences whose ids differ: fp32 and int8, greedy and beam 4, without and with the shortlist."""
    sources = contest.model.text.source_ids[: 20 if contest.quick else 200]
    rows = []
    for variant in contest.model.bundle.manifest.variants:
        for shortlist in (False, True):
            ids: dict[int, list[list[list[int]]]] = defaultdict(list)
            for settings in contest.settings(variant, shortlist=shortlist).values():
                with Worker(settings) as worker:
                    for beam_size in (1, 4):
                        ids[beam_size].append(worker.translate(sources, beam_size=beam_size, with_ids=True)["ids"])
            rows += [
                Row(
                    section="ids",
                    model=contest.model.name,
                    setting=f"{variant}, beam {beam_size}{', shortlist' if shortlist else ''}",
                    measure=DIFFERENT,
                    ours=float(sum(one != other for one, other in zip(*found, strict=True))),
                    against=contest.other,
                    sentences=len(sources),
                    is_headline=True,
                )
                for beam_size, found in ids.items()
            ]
    print_rows(f"Sentences with different ids, of {len(sources)}", rows)
    return rows


def compare_offline(contest: Contest) -> list[Row]:
    """Compares the whole text at once, greedily."""
    return _compare_engines(contest, "offline", "offline int8 greedy", headlines=(*_SPEED, "peak MB"))


def compare_latency(contest: Contest) -> list[Row]:
    """Compares one sentence at a time."""
    return _compare_engines(contest, "latency", "one sentence at a time, int8 greedy", one_by_one=True)


def compare_beam(contest: Contest) -> list[Row]:
    """Compares the whole text at once, with a beam of 4."""
    return _compare_engines(contest, "beam", "offline int8 beam 4", beam_size=4)


def compare_served(contest: Contest) -> list[Row]:
    """Compares live servers under the same Poisson arrivals, others in every round."""
    seconds = 5.0 if contest.quick else 30.0
    figures: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in contest.checkouts}
    server_cores, client_cores = divide_cores()
    with pinned(server_cores), ExitStack() as stack:
        servers = {name: stack.enter_context(our_server(each)) for name, each in contest.settings().items()}
        with pinned(client_cores):
            callers = {name: Callers(server, contest.model.text.lines, 1) for name, server in servers.items()}
        rate = _LOAD * min(each.closed(seconds) for each in callers.values())
        for number, name in turns(list(callers), contest.rounds):
            found = callers[name].open(rate, seconds, seed=number + 2)
            for measure, values in found.items() if number >= 0 else ():
                figures[name][measure] += values
        for each in callers.values():
            each.close()
    setting = f"served, {_LOAD:.0%} load, {rate:.1f}/s"
    return _rows(contest, figures, "served", setting, ("p95 ms", "goodput/s"))


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
            callers = Callers(server, contest.model.text.lines, 1)
            callers.closed(5.0 if contest.quick else 20.0)
            callers.close()
            found["resident MB after load"] = resident_bytes(server.pid)
            found["peak MB"] = peak_resident_bytes(server.pid)
            for measure, value in found.items() if number >= 0 else ():
                figures[name][measure].append(value / 1e6)
    return _rows(contest, figures, "memory", "server", ("resident MB when SERVING", "resident MB after load"))


def _compare_engines(
    contest: Contest,
    section: str,
    name: str,
    *,
    beam_size: int = 1,
    one_by_one: bool = False,
    headlines: tuple[str, ...] = _SPEED,
) -> list[Row]:
    sources = contest.model.text.source_ids
    sources = sources[: (10 if one_by_one else 40) if contest.quick else (100 if one_by_one else len(sources))]
    setting = Setting(
        section=section,
        model=contest.model.name,
        name=name,
        beam_size=beam_size,
        one_by_one=one_by_one,
        systems=contest.settings(),
        headlines=headlines,
    )
    return compare(setting, sources, contest.rounds)


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
        model=contest.model.name,
        setting=setting,
        against=contest.other,
        rounds=contest.rounds,
    )
    print_rows(f"{contest.model.name}, {setting}: medians of {contest.rounds} rounds", rows)
    return rows


SECTIONS: dict[str, Callable[[Contest], list[Row]]] = {
    "ids": compare_ids,
    "offline": compare_offline,
    "latency": compare_latency,
    "beam": compare_beam,
    "served": compare_served,
    "start": compare_start,
    "memory": compare_memory,
}
_EVERY_MODEL = ("ids", "offline")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.versus", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("other", type=Path, metavar="OTHER_CHECKOUT", help="a checkout of another commit")
    parser.add_argument("--model", nargs="+", choices=MODELS, default=["base", "student"], help="(base student)")
    parser.add_argument("--rounds", type=int, help="alternated rounds (default 9, with --quick 3)")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="sections (all)")
    parser.add_argument("--threads", type=int, help="cores that both may use, hence lanes of each (all)")
    parser.add_argument("--quick", action="store_true", help="few sentences, short loads: no real numbers")
    parser.add_argument("--text", type=Path, default=DEFAULT_TEXT, help="sentences, one per line, plain or gzipped")
    parser.add_argument("--checkpoint", type=Path, default=BUILTIN_CHECKPOINT, help="of the built-in model")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench", help="keeps the models that are made")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "versus.json", help="all numbers")
    parser.add_argument("--seed", type=int, default=1, help="of the random weights")
    arguments = parser.parse_args()
    arguments.other = arguments.other.resolve()
    if not (arguments.other / "tests" / "bench" / "systems.py").is_file():
        parser.error(f"{arguments.other}: is no checkout of this repository with tests/bench")
    arguments.rounds = arguments.rounds or (3 if arguments.quick else 9)
    return arguments


if __name__ == "__main__":
    main()
