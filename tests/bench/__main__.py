"""`python -m tests.bench [SECTION ...]`: this engine against CTranslate2, on the same weights, text and machine."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.backlog import measure_backlog
from tests.bench.calibration import best_settings
from tests.bench.ids import DIFFERENT, check_neighbours, check_same_ids, our_settings, pytorch_settings, their_settings
from tests.bench.limits import measure_limits
from tests.bench.machine import describe_machine, versions
from tests.bench.models import MODELS, Model, prepare
from tests.bench.record import Row, new_record
from tests.bench.report import print_table
from tests.bench.rounds import Setting, compare
from tests.bench.served import compare_served
from tests.bench.systems import Settings, has_ctranslate2
from tests.bench.text import DEFAULT_TEXT, ROOT

# Ours and CTranslate2's, by device, where speed counts.
PRECISIONS = {"cpu": ("cpu-int8", "int8"), "cuda": ("cuda-fp16", "float16")}
_CALIBRATION_SENTENCES = 256  # batches enough for every worker; half of it with a beam, a sixteenth one by one


def main() -> None:
    """Entry point; exit code 1 if the fp32 ids of the two systems differ, for then no number means anything."""
    arguments = _parse()
    cores = sorted(os.sched_getaffinity(0))
    if arguments.cores:
        os.sched_setaffinity(0, cores[: arguments.cores])  # workers inherit it
    machine = describe_machine()
    print_table("Machine", ["what", "value"], [*machine.items(), *versions().items()])
    rows: list[Row] = []
    for name in arguments.model:
        model = prepare(
            name,
            arguments.text,
            arguments.work,
            arguments.checkpoint,
            arguments.seed,
            PRECISIONS[arguments.device][0],
            with_ctranslate2=has_ctranslate2(arguments.device),
        )
        print(f"\n## {name}: {len(model.text.lines)} sentences of {arguments.text.name}", flush=True)
        for section in arguments.sections:
            rows += SECTIONS[section](model, arguments)
            new_record(machine, rows).write(arguments.out)
    print(f"\nAll numbers: {arguments.out}")
    sys.exit(int(any(row.measure == DIFFERENT and row.ours for row in rows)))


def _ids(model: Model, arguments: argparse.Namespace) -> list[Row]:
    return check_same_ids(model, model.text.source_ids[: 40 if arguments.quick else 200])


def _neighbours(model: Model, arguments: argparse.Namespace) -> list[Row]:
    return check_neighbours(model, model.text.source_ids[: 20 if arguments.quick else 200])


def _offline(model: Model, arguments: argparse.Namespace) -> list[Row]:
    fast, exact = PRECISIONS[arguments.device], ("cpu-fp32", "float32")
    ways = {
        f"{fast[1]} greedy": (fast, 1, False),
        f"{fast[1]} greedy, shortlist": (fast, 1, True),
        f"{fast[1]} beam 4": (fast, 4, False),
        "float32 greedy": (exact, 1, False),
    }
    if arguments.device == "cuda":  # which has neither shortlists nor fp32
        ways = {name: way for name, way in ways.items() if way[0] == fast and not way[2]}
    elif arguments.quick:
        del ways["float32 greedy"]
    rows: list[Row] = []
    for name, (precisions, beam_size, shortlist) in ways.items():
        rows += _compare(model, arguments, f"offline {name}", *precisions, beam_size, shortlist=shortlist)
    return rows


def _latency(model: Model, arguments: argparse.Namespace) -> list[Row]:
    variant, precision = PRECISIONS[arguments.device]
    name = f"one sentence at a time, {precision} greedy"
    return _compare(model, arguments, name, variant, precision, 1, one_by_one=True)


def _compare(
    model: Model,
    arguments: argparse.Namespace,
    name: str,
    variant: str,
    precision: str,
    beam_size: int,
    *,
    one_by_one: bool = False,
    shortlist: bool = False,
) -> list[Row]:
    sources = model.text.source_ids
    few = 100 if one_by_one else len(sources)
    sources = sources[: (10 if one_by_one else 40) if arguments.quick else few]
    systems = {"ours": our_settings(model, variant, shortlist=shortlist)}
    theirs = _their_best(model, arguments, precision, beam_size, one_by_one, shortlist)
    if theirs is not None:
        systems["CTranslate2"] = theirs
    if arguments.device == "cuda" and beam_size == 1:
        start = pytorch_settings(model, batch=1 if one_by_one else 8192)
        systems["PyTorch"] = _calibrated(start, model, arguments, beam_size, one_by_one)
    is_plain = not one_by_one and not shortlist and beam_size == 1 and variant == PRECISIONS[arguments.device][0]
    setting = Setting(
        section="latency" if one_by_one else "offline",
        model=model.name,
        name=name,
        beam_size=beam_size,
        one_by_one=one_by_one,
        systems=systems,
        headlines=("tokens/s", "peak MB") if is_plain else ("tokens/s",),
    )
    return compare(setting, sources, arguments.rounds)


def _their_best(
    model: Model,
    arguments: argparse.Namespace,
    precision: str,
    beam_size: int,
    one_by_one: bool,
    shortlist: bool = False,
) -> Settings | None:
    """Returns CTranslate2's settings; None where it is not installed, or has no CUDA to run on."""
    if not has_ctranslate2(arguments.device):
        print("\nCTranslate2 is not installed, or sees no CUDA device: left out", flush=True)
        return None
    start = their_settings(model, precision, arguments.device, shortlist=shortlist)
    return _calibrated(start, model, arguments, beam_size, one_by_one)


def _calibrated(
    start: Settings, model: Model, arguments: argparse.Namespace, beam_size: int, one_by_one: bool
) -> Settings:
    """Returns the best settings, or those to start from where it shall be quick."""
    if arguments.quick:
        return start
    count = _CALIBRATION_SENTENCES // (16 if one_by_one else 2 if beam_size > 1 else 1)
    return best_settings(start, model.text.source_ids[:count], beam_size, one_by_one)


def _served(model: Model, arguments: argparse.Namespace) -> list[Row]:
    variant, precision = PRECISIONS[arguments.device]
    theirs = _their_best(model, arguments, precision, arguments.served_beam, one_by_one=False)
    ours = our_settings(model, variant)
    return compare_served(model, ours, theirs, arguments.served_beam, arguments.seconds, quick=arguments.quick)


def _backlog(model: Model, arguments: argparse.Namespace) -> list[Row]:
    settings = our_settings(model, PRECISIONS[arguments.device][0])
    sources = model.text.source_ids[: 60 if arguments.quick else None]
    return measure_backlog(model.name, settings, sources, arguments.rounds, quick=arguments.quick)


def _limits(model: Model, arguments: argparse.Namespace) -> list[Row]:
    settings = our_settings(model, "cpu-int8")
    sources = model.text.source_ids[: 60 if arguments.quick else None]
    return measure_limits(model, settings, sources, quick=arguments.quick)


SECTIONS: dict[str, Callable[[Model, argparse.Namespace], list[Row]]] = {
    "ids": _ids,
    "neighbours": _neighbours,
    "offline": _offline,
    "latency": _latency,
    "served": _served,
    "backlog": _backlog,
    "limits": _limits,
}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default: all")
    parser.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS), help="default: all")
    parser.add_argument("--device", choices=list(PRECISIONS), default="cpu", help="cuda compares in fp16 (default cpu)")
    parser.add_argument("--rounds", type=int, help="alternated rounds (default 9, with --quick 3)")
    parser.add_argument("--seconds", type=float, help="of each level of the served load (default 30, with --quick 5)")
    parser.add_argument("--quick", action="store_true", help="few sentences, CTranslate2 uncalibrated: no real numbers")
    parser.add_argument("--text", type=Path, default=DEFAULT_TEXT, help="sentences, one per line, plain or gzipped")
    parser.add_argument("--checkpoint", type=Path, default=BUILTIN_BUNDLE, help="of `builtin`, or its bundle")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench", help="keeps the models that are made")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "results.json", help="all numbers")
    parser.add_argument("--cores", type=int, help="use so many cores only (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the random weights")
    parser.add_argument("--served-beam", type=int, default=1, help="beam of the served load (default 1)")
    arguments = parser.parse_args()
    sections = list(SECTIONS)
    if arguments.device == "cuda":
        sections.remove("limits")  # which measures the processor
    if not has_ctranslate2(arguments.device):
        sections.remove("ids")  # which are compared with its own
    unknown = set(arguments.sections) - set(sections)
    if unknown:
        parser.error(f"unknown section: {', '.join(sorted(unknown))}")
    arguments.sections = arguments.sections or sections
    arguments.seconds = arguments.seconds or (5.0 if arguments.quick else 30.0)
    arguments.rounds = arguments.rounds or (3 if arguments.quick else 9)
    return arguments


if __name__ == "__main__":
    main()
