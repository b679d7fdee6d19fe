"""S1, S4 to S6: what other commands and the rooms' own tests prove, run from here so that the report has it."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from tests.acceptance.report import Check
from tests.acceptance.server_process import REPOSITORY
from tests.chaos.case import Case, Options, Skipped, told

_TIMEOUT_SECONDS = 3600.0
_LAST_LINES = 24  # the table of all fuzzed targets, the longest


def run_command(arguments: Sequence[str], options: Options) -> Iterator[Check]:
    """Runs `python -m ...`: it must exit 0.

    Args:
        arguments: the module, and its arguments.
        options: the quick part has none of them.

    Raises:
        Skipped: there is no such module here, or too little time.
    """
    if options.is_quick:
        raise Skipped("takes minutes: not in the quick part")
    if importlib.util.find_spec(arguments[0]) is None:
        raise Skipped(f"{arguments[0]} is not there")
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_SECONDS,
    )
    yield Check(" ".join(arguments), f"exit {done.returncode}", "exit 0", done.returncode == 0)
    for line in (done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:]:
        yield told("it says", line)


def run_tests(paths: Sequence[str], options: Options) -> Iterator[Check]:
    """Runs tests. Raises Skipped where there are none."""
    if missing := [path for path in paths if not (REPOSITORY / path).exists()]:
        raise Skipped(f"{', '.join(missing)}: not there")
    yield from run_command(["pytest", "-q", *paths], options)


_FUZZ = ["tests.fuzz", "--runs", "50000", "--seconds", "600"]  # for each of its 21 targets

CASES = (
    Case("S1-fuzz", "a million inputs, and what they do to the readers of foreign bytes", partial(run_command, _FUZZ)),
    Case("S4", "attacks on HTTP/2", partial(run_command, ["tests.chaos.attacks", "all"])),
    Case("S4-envoy", "the same behind Envoy", partial(run_command, ["tests.chaos.attacks", "all", "--front", "envoy"])),
    Case("S5", "certificates", partial(run_tests, ["tests/server/access/test_certificates.py"])),
    Case("S6", "keys, tenants, every method refused without", partial(run_tests, ["tests/server/access"])),
)
