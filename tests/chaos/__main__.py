"""`python -m tests.chaos R2 R8 --quick`: runs cases and prints their figures; without names, all of them."""

import argparse
import contextlib
import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.acceptance.report import EXIT_FAILED, EXIT_PASSED, Check, print_checks
from tests.chaos import (
    alerts,
    bundles,
    dependencies,
    elsewhere,
    engine_faults,
    fairness,
    floods,
    fronts,
    hostile,
    imports,
    inputs,
    leaving,
    machine,
    mutants,
    neighbours,
    on_demand,
    overload,
    peers,
    restarts,
    soak,
    web_fronts,
    web_leaving,
    web_load,
    web_peers,
)
from tests.chaos.case import SKIPPED, Case, Options, Skipped
from tests.chaos.records import Record, keep, record
from tests.chaos.written_report import PATH, write_report

_FAMILIES = (
    soak,
    overload,
    floods,
    fairness,
    neighbours,
    on_demand,
    restarts,
    engine_faults,
    fronts,
    leaving,
    peers,
    machine,
    bundles,
    hostile,
    dependencies,
    elsewhere,
    inputs,
    imports,
    alerts,
    mutants,
    web_leaving,
    web_load,
    web_peers,
    web_fronts,
)
CASES: tuple[Case, ...] = tuple(case for family in _FAMILIES for case in family.CASES)


def run_case(case: Case, options: Options) -> Record:
    """Runs a case and prints its table; a crash of it is a failure."""
    print(f"\n{case.name}: {case.title}", flush=True)
    started = time.monotonic()
    try:
        checks = list(case.run(options))
    except Skipped as reason:
        checks = [Check(SKIPPED, str(reason))]
    except Exception as error:  # noqa: BLE001  # the other cases are to be run all the same
        checks = [Check("the case itself", f"{type(error).__name__}: {error}"[:500], "no error", passed=False)]
    print_checks(checks)
    return record(case, options, checks, time.monotonic() - started)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for; returns the exit status."""
    names = [case.name for case in CASES]
    default = Options()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(names)} (all)")
    parser.add_argument("--quick", action="store_true", help="as much as fits into `make test`")
    parser.add_argument("--seconds", type=float, default=default.seconds, help="of the soak (%(default)s)")
    parser.add_argument("--seed", type=int, default=default.seed, help="of whatever is drawn (%(default)s)")
    parser.add_argument("--report", action="store_true", help=f"keep what is found, and write {PATH.name} anew")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="write records; tables then go to stderr")
    options = parser.parse_args(arguments)
    if unknown := set(options.cases) - set(names):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    chosen = [case for case in CASES if not options.cases or case.name in options.cases]
    how = Options(is_quick=options.quick, seconds=options.seconds, seed=options.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that servers are stopped
    records = []
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        for case in chosen:
            records.append(run_case(case, how))
            if options.report:
                keep(records[-1])
                write_report(CASES)
    if options.json:
        text = json.dumps([asdict(each) for each in records]) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            Path(options.json).write_text(text, encoding="utf-8")
    return EXIT_FAILED if any(each.failed for each in records) else EXIT_PASSED


if __name__ == "__main__":
    sys.exit(main())
