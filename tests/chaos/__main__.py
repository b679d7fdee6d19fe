"""`python -m tests.chaos R2 R8 --quick`: runs cases and prints their figures; without names, all of them."""

import argparse
import json
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
    fronts,
    inputs,
    leaving,
    machine,
    overload,
    peers,
    restarts,
    soak,
)
from tests.chaos.case import Case, Options, Skipped
from tests.chaos.written_report import PATH, write_report

_FAMILIES = (
    soak,
    overload,
    fairness,
    restarts,
    engine_faults,
    fronts,
    leaving,
    peers,
    machine,
    bundles,
    dependencies,
    elsewhere,
    inputs,
    alerts,
)
CASES: tuple[Case, ...] = tuple(case for family in _FAMILIES for case in family.CASES)


def run_case(case: Case, options: Options) -> list[Check]:
    """Runs a case and prints its table; a crash of it is a failure."""
    print(f"\n{case.name}: {case.title}", flush=True)
    started = time.monotonic()
    try:
        checks = list(case.run(options))
    except Skipped as reason:
        checks = [Check("skipped", str(reason))]
    except Exception as error:  # noqa: BLE001  # the other cases are to be run all the same
        checks = [Check("the case itself", f"{type(error).__name__}: {error}"[:500], "no error", passed=False)]
    checks.append(Check("seconds", f"{time.monotonic() - started:.0f}"))
    print_checks(checks)
    return checks


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for; returns the exit status."""
    names = [case.name for case in CASES]
    default = Options()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(names)} (all)")
    parser.add_argument("--quick", action="store_true", help="as much as fits into `make test`")
    parser.add_argument("--seconds", type=float, default=default.seconds, help="of the soak (%(default)s)")
    parser.add_argument("--seed", type=int, default=default.seed, help="of whatever is drawn (%(default)s)")
    parser.add_argument("--report", action="store_true", help=f"write {PATH.name}")
    parser.add_argument("--json", type=Path, help="file that takes the lines of all tables")
    options = parser.parse_args(arguments)
    if unknown := set(options.cases) - set(names):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    chosen = [case for case in CASES if not options.cases or case.name in options.cases]
    how = Options(is_quick=options.quick, seconds=options.seconds, seed=options.seed)
    results = [(case, run_case(case, how)) for case in chosen]
    if options.report:
        write_report(results, how)
    if options.json:
        lines = [{"case": case.name} | asdict(check) for case, checks in results for check in checks]
        options.json.write_text(json.dumps(lines), encoding="utf-8")
    has_failed = any(check.passed is False for _, checks in results for check in checks)
    return EXIT_FAILED if has_failed else EXIT_PASSED


if __name__ == "__main__":
    sys.exit(main())
