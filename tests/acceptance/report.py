"""The table that every acceptance command prints, and its exit status."""

from collections.abc import Sequence
from dataclasses import dataclass

from tabulate import tabulate

EXIT_PASSED = 0
EXIT_FAILED = 1
EXIT_NOT_RUN = 2
EXIT_TOOL_MISSING = 77


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the table.

    Attributes:
        name: What was looked at.
        measured: What was found.
        bar: What it has to be; empty for a line that only informs.
        passed: Whether it is so; None if this was not judged.
    """

    name: str
    measured: str
    bar: str = ""
    passed: bool | None = None

    @property
    def verdict(self) -> str:
        """The last column: what is not judged either only informs, or could not be judged in this run."""
        return {None: "not judged", True: "ok", False: "FAILED"}[self.passed]


def print_checks(checks: Sequence[Check]) -> int:
    """Prints the table and a last line with the verdict.

    Args:
        checks: The lines, in order.

    Returns:
        The exit status: 0 when no check failed, else 1.
    """
    rows = [(check.name, check.measured, check.bar, check.verdict) for check in checks]
    print(tabulate(rows, ("check", "measured", "bar", ""), disable_numparse=True), flush=True)
    num_failed = sum(check.passed is False for check in checks)
    num_judged = sum(check.passed is not None for check in checks)
    print(
        f"\n{'FAILED' if num_failed else 'PASSED'}: {num_judged - num_failed} of {num_judged} checks hold", flush=True
    )
    return EXIT_FAILED if num_failed else EXIT_PASSED
