"""`python -m tests.bench.versus OTHER_CHECKOUT`: this checkout's engine and server against another's, by turns.

The other checkout is one of the same repository, such as `git worktree add ../other COMMIT` makes. Its code runs in
processes of its own, by this interpreter, on the bundles that this checkout writes, or on `--bundle`, which an old
checkout may need. Both run with their own defaults. Ratios are ours to theirs.

`ids` (fp32 and int8, greedy and beam 4, without and with the shortlist) and `offline` take every model named, the other
sections the first one: `latency` is one sentence at a time, `served` Poisson arrivals at 80 % of the weaker server's
capacity, others in every round, `calls` one caller's single sentences, and all in one call, `start` the seconds to
health SERVING, and `memory` what a server has resident then, and after a closed loop of 64 callers. For the last three
servers are started anew in every round, as processes of the same program differ by some percent; for `calls` both run
then, and take turns within seconds.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from server.bundle.bundle import open_bundle
from server.bundle.manifest import TOKENIZER_FILE
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.contest import Contest, compare_calls, compare_memory, compare_served, compare_start
from tests.bench.ids import DIFFERENT
from tests.bench.machine import describe_machine, versions
from tests.bench.models import MODELS, prepare
from tests.bench.record import Row, commit_of, new_record
from tests.bench.report import print_rows, print_table
from tests.bench.rounds import Setting, compare
from tests.bench.summary import summarize
from tests.bench.text import DEFAULT_TEXT, ROOT, Text, read_text
from tests.bench.worker import Worker

_SPEED = ("tokens/s", "CPU s/1000 tokens")


def main() -> None:
    """Entry point."""
    arguments = _parse()
    if arguments.threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])  # workers and servers inherit it
    machine = describe_machine()
    print_table("Machine", ["what", "value"], [*machine.items(), *versions().items()])
    checkouts = {"ours": ROOT, commit_of(arguments.other): arguments.other}
    rows: list[Row] = []
    subjects = [_of_bundle(arguments)] if arguments.bundle else [_of_model(name, arguments) for name in arguments.model]
    for name, bundle, text in subjects:
        contest = Contest(
            name=name, bundle=bundle, text=text, checkouts=checkouts, rounds=arguments.rounds, quick=arguments.quick
        )
        print(f"\n## {name}: {commit_of(ROOT)} against {contest.other}", flush=True)
        for section in arguments.only:
            if name == subjects[0][0] or section in _EVERY_MODEL:
                rows += SECTIONS[section](contest)
                new_record(machine, rows).write(arguments.out)
    print(f"\n{summarize([new_record(machine, rows)])}\nAll numbers: {arguments.out}")


def compare_ids(contest: Contest) -> list[Row]:
    """Counts the sentences whose ids differ: fp32 and int8, greedy and beam 4, without and with the shortlist."""
    sources = contest.text.source_ids[: 20 if contest.quick else 200]
    rows = []
    for variant in open_bundle(contest.bundle).manifest.variants:
        for shortlist in (False, True):
            ids: dict[int, list[list[list[int]]]] = defaultdict(list)
            for settings in contest.settings(variant, shortlist=shortlist).values():
                with Worker(settings) as worker:
                    for beam_size in (1, 4):
                        ids[beam_size].append(worker.translate(sources, beam_size=beam_size, with_ids=True)["ids"])
            rows += [
                Row(
                    section="ids",
                    model=contest.name,
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


def _compare_engines(
    contest: Contest,
    section: str,
    name: str,
    *,
    beam_size: int = 1,
    one_by_one: bool = False,
    headlines: tuple[str, ...] = _SPEED,
) -> list[Row]:
    sources = contest.text.source_ids
    sources = sources[: (10 if one_by_one else 40) if contest.quick else (100 if one_by_one else len(sources))]
    setting = Setting(
        section=section,
        model=contest.name,
        name=name,
        beam_size=beam_size,
        one_by_one=one_by_one,
        systems=contest.settings(),
        headlines=headlines,
    )
    return compare(setting, sources, contest.rounds)


SECTIONS: dict[str, Callable[[Contest], list[Row]]] = {
    "ids": compare_ids,
    "offline": compare_offline,
    "latency": compare_latency,
    "beam": compare_beam,
    "served": compare_served,
    "calls": compare_calls,
    "start": compare_start,
    "memory": compare_memory,
}
_EVERY_MODEL = ("ids", "offline")


def _of_model(name: str, arguments: argparse.Namespace) -> tuple[str, Path, Text]:
    model = prepare(name, arguments.text, arguments.work, arguments.checkpoint, arguments.seed, with_ctranslate2=False)
    return name, model.bundle.directory, model.text


def _of_bundle(arguments: argparse.Namespace) -> tuple[str, Path, Text]:
    tokenizer = (arguments.bundle / TOKENIZER_FILE).read_bytes()
    return arguments.bundle.name, arguments.bundle.resolve(), read_text(arguments.text, tokenizer)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.versus", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("other", type=Path, metavar="OTHER_CHECKOUT", help="a checkout of another commit")
    parser.add_argument("--model", nargs="+", choices=MODELS, default=["base", "student"], help="(base student)")
    parser.add_argument("--bundle", type=Path, help="one that both can read, in the place of models")
    parser.add_argument("--rounds", type=int, help="alternated rounds (default 9, with --quick 3)")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="sections (all)")
    parser.add_argument("--threads", type=int, help="cores that both may use, hence lanes of each (all)")
    parser.add_argument("--quick", action="store_true", help="few sentences, short loads: no real numbers")
    parser.add_argument("--text", type=Path, default=DEFAULT_TEXT, help="sentences, one per line, plain or gzipped")
    parser.add_argument("--checkpoint", type=Path, default=BUILTIN_BUNDLE, help="of `builtin`, or its bundle")
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
