"""What a run of a case found, kept as JSON in results/: cases are run on different days, and at different commits."""

import datetime as dt
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.acceptance.report import Check
from tests.acceptance.server_process import REPOSITORY
from tests.bench.machine import describe_machine, versions
from tests.chaos.case import SKIPPED, Case, Options

DIRECTORY = Path(__file__).with_name("results")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run of one case.

    Attributes:
        date: of its end, UTC.
        commit: with "-dirty" where the checkout differed from it.
        load: processes that wanted to run in the last minute, those of the case included.
        machine: and its software, as one line.
        seconds: that it took.
    """

    case: str
    date: str
    commit: str
    is_quick: bool
    seed: int
    load: float
    machine: str
    seconds: float
    checks: list[Check]

    @property
    def is_skipped(self) -> bool:
        """Whether it could not be run; its only line says why."""
        return any(check.name == SKIPPED for check in self.checks)

    @property
    def num_judged(self) -> int:
        """Checks that have a bar."""
        return sum(check.passed is not None for check in self.checks)

    @property
    def failed(self) -> list[str]:
        """Names of the checks that do not hold."""
        return [check.name for check in self.checks if check.passed is False]


def record(case: Case, options: Options, checks: Sequence[Check], seconds: float) -> Record:
    """Returns the record of a run that has just ended."""
    return Record(
        case=case.name,
        date=dt.datetime.now(tz=dt.UTC).date().isoformat(),
        commit=_commit(),
        is_quick=options.is_quick,
        seed=options.seed,
        load=round(os.getloadavg()[0], 2),
        machine=_machine(),
        seconds=round(seconds),
        checks=list(checks),
    )


def keep(new: Record, directory: Path = DIRECTORY) -> bool:
    """Writes a record, and says whether it did: a quick part, or a case that was skipped, replaces no whole run."""
    old = read(new.case, directory)
    if old is not None and not old.is_skipped and (new.is_skipped or (new.is_quick and not old.is_quick)):
        return False
    directory.mkdir(exist_ok=True)
    text = json.dumps(asdict(new), indent=1, ensure_ascii=False)
    (directory / f"{new.case}.json").write_text(text + "\n", encoding="utf-8")
    return True


def read(case: str, directory: Path = DIRECTORY) -> Record | None:
    """Returns a case's record, None where there is none."""
    file = directory / f"{case}.json"
    if not file.exists():
        return None
    fields = json.loads(file.read_text(encoding="utf-8"))
    return Record(**fields | {"checks": [Check(**check) for check in fields["checks"]]})


def _machine() -> str:
    facts = describe_machine()
    del facts["load_1_minute"]
    facts["flags"] = " ".join(str(flag) for flag in facts["flags"]) if isinstance(facts["flags"], list) else ""
    return ", ".join(f"{name} {value}" for name, value in (facts | versions()).items())


def _commit() -> str:
    """Returns the checkout's commit, and whether it differs from that in more than what the report writes."""
    written = [f":!{DIRECTORY.relative_to(REPOSITORY)}", ":!*/REPORT.md"]
    commit, changes = (
        subprocess.run(["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=False).stdout
        for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--", ".", *written])
    )
    return (commit.strip() or "unknown") + ("-dirty" if changes else "")
