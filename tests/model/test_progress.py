import logging
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest

from model.progress import LINE_SECONDS, Progress
from tests.model.runs import ROOT

ON_A_TERMINAL = """
import logging, sys
from model.progress import Progress
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
with Progress(3, 0) as progress:
    for step in range(3):
        progress.update(0, 2.5, 100, 0.01)
        logging.info("a line of %d", step)
"""


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    caplog.set_level(logging.INFO, "model.progress")
    handler, logger = Lines(), logging.getLogger("model.progress")
    logger.addHandler(handler)
    yield handler.told
    logger.removeHandler(handler)


def test_where_nobody_watches_the_first_update_the_last_and_one_now_and_then_are_told(lines: list[str]) -> None:
    clock = Clock()
    with Progress(1000, 0, is_terminal=False, clock=clock) as progress:
        for _ in range(1000):
            clock.seconds += LINE_SECONDS / 256
            progress.update(0, 2.0, 10, 0.1)

    assert [line.partition(",")[0] for line in lines] == [
        "step 1 of 1000",
        "step 257 of 1000",
        "step 513 of 1000",
        "step 769 of 1000",
        "step 1000 of 1000",
    ]


def test_a_line_has_the_mean_loss_the_speed_and_the_end(lines: list[str]) -> None:
    clock = Clock()
    with Progress(100, 90, is_terminal=False, clock=clock) as progress:
        progress.update(3, 9.0, 50, 0.1)
        for loss in (2.0, 4.0):
            clock.seconds += LINE_SECONDS / 2
            progress.update(3, loss, 50, 0.1)

    assert lines[-1].startswith("step 93 of 100, epoch 3: loss 3.000, 500 tokens/s, ends at about ")
    assert len(lines) == 2


def test_the_end_is_reckoned_from_the_updates_of_this_run(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr("time.time", lambda: 12 * 3600.0)
    clock = Clock()
    with Progress(100, 90, is_terminal=False, clock=clock) as progress:
        clock.seconds = 5000.0
        progress.update(0, 1.0, 1, 1.0)  # the first is slow, and not counted
        for _ in range(2):
            clock.seconds += 3600.0
            progress.update(0, 1.0, 1, 1.0)

    assert "ends at" not in lines[0]
    assert lines[1].endswith("ends at about 20:00")
    assert lines[2].endswith("ends at about 19:00")


def test_an_end_that_is_far_away_has_a_date(lines: list[str]) -> None:
    clock = Clock()
    with Progress(1000, 0, is_terminal=False, clock=clock) as progress:
        for _ in range(2):
            progress.update(0, 1.0, 1, 1.0)
            clock.seconds += 3600.0
        progress.update(0, 1.0, 1, 1.0)

    assert len(lines[-1].rpartition(" about ")[2].split()) == 3


def test_of_several_processes_one_speaks(lines: list[str]) -> None:
    with Progress(10, 0, is_shown=False, is_terminal=True) as progress:
        progress.update(0, 1.0, 1, 1.0)

    assert lines == []


def test_on_a_terminal_there_is_a_bar_and_log_lines_stand_above_it() -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    try:
        subprocess.run([sys.executable, "-c", ON_A_TERMINAL], cwd=ROOT, stderr=theirs, check=True)
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)

    assert "3/3 steps 100%" in shown
    assert "epoch 0: loss 2.500, " in shown
    assert "tokens/s, ends at about " in shown
    assert "step 1 of 3" not in shown
    assert [number for number in range(3) if f"\ra line of {number}\r\n" in shown.replace(" \r", "\r")] == [0, 1, 2]
