"""The quick part of the suite: what holds on any machine, however busy. `make chaos` has the rest, and the figures."""

from pathlib import Path

import pytest

from tests.acceptance.server_process import REPOSITORY
from tests.chaos.__main__ import CASES
from tests.chaos.case import Case, Options, Skipped

# The others need the machine for themselves, root, or a program; or they are tests of their rooms already.
QUICK = ("O2", "R2", "R3", "R4", "R7", "R8", "R9", "R10", "R21", "R22", "S1", "S2", "S8", "S9", "W1", "W2", "W3", "W4")


@pytest.mark.parametrize("case", [case for case in CASES if case.name in QUICK], ids=lambda case: case.name)
def test_case(case: Case) -> None:
    try:
        checks = list(case.run(Options(is_quick=True)))
    except Skipped as reason:
        pytest.skip(str(reason))

    assert [f"{check.name}: {check.measured}, not {check.bar}" for check in checks if check.passed is False] == []


def test_the_server_has_no_hooks_for_faults() -> None:
    files = (path for room in ("server", "babelserve") for path in (REPOSITORY / room).rglob("*.py"))
    words = ("failpoint", "chaos", "SIGUSR")

    assert [path for path in files if _mentions(path, words)] == []


def _mentions(path: Path, words: tuple[str, ...]) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(word.lower() in text.lower() for word in words)
