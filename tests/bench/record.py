"""What a run measured: the one form that is written to `build/bench/`, kept in `results/` and read again."""

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.machine import versions
from tests.bench.statistics import Ratio, median_ratio
from tests.bench.text import ROOT

Figures = Mapping[str, Sequence[float]]  # by measure, one number for each round


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One quantity of our engine, and the same of what it is compared with.

    Attributes:
        section: of the benchmark, such as "offline".
        model: one of `tests.bench.models.MODELS`.
        setting: what was done, such as "offline int8 greedy".
        measure: the quantity with its unit, such as "tokens/s".
        ours: its median over the rounds; None where only the other's is known.
        theirs: the same of the other; None where there is none.
        against: what the other is: a system, or the commit of another checkout.
        ratio: of ours to theirs, where rounds give it an interval.
        rounds: that were measured.
        sentences: of a round; None where they do not matter.
        settings: of ours and of the other, as printed.
        is_headline: whether the summary shows it.
    """

    section: str
    model: str
    setting: str
    measure: str
    ours: float | None = None
    theirs: float | None = None
    against: str = "CTranslate2"
    ratio: Ratio | None = None
    rounds: int = 1
    sentences: int | None = None
    settings: tuple[str, ...] = ()
    is_headline: bool = False

    @property
    def quotient(self) -> str:
        """Ours divided by theirs, with an interval where there is one."""
        if self.ratio:
            return str(self.ratio)
        return "" if self.ours is None or not self.theirs else f"{self.ours / self.theirs:.2f}"


_DEFAULTS = {each.name: each.default for each in fields(Row)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A run on one machine.

    Attributes:
        date: of the run.
        commit: of this repository; "-dirty" at its end means that files were changed.
        machine: as `describe_machine` says.
        versions: of the packages that matter.
        rows: what was measured.
        note: what a reader of the numbers must know.
    """

    date: str
    commit: str
    machine: dict[str, object]
    versions: dict[str, str]
    rows: tuple[Row, ...]
    note: str = ""

    def write(self, path: Path) -> None:
        """Writes JSON, a line for each row without what it leaves at its default; the directory is made."""
        facts = {name: value for name, value in asdict(self).items() if name != "rows"}
        given = [{name: value for name, value in asdict(row).items() if value != _DEFAULTS[name]} for row in self.rows]
        rows = ",\n".join(f"    {json.dumps(row)}" for row in given)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{json.dumps(facts, indent=2)[:-2]},\n  "rows": [\n{rows}\n  ]\n}}\n', encoding="utf-8")


def new_record(machine: dict[str, object], rows: Sequence[Row]) -> Record:
    """Returns what was measured today by this checkout.

    Args:
        machine: as it was described before the first measurement, for its load.
        rows: all that was measured.
    """
    today = datetime.now(UTC).date().isoformat()
    return Record(date=today, commit=commit_of(ROOT), machine=machine, versions=versions(), rows=tuple(rows))


def read_record(path: Path) -> Record:
    """Reads what `Record.write` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    for row in document["rows"]:
        row["settings"] = tuple(row.get("settings", ()))
        if "ratio" in row:
            row["ratio"] = Ratio(**row["ratio"])
    return Record(**{**document, "rows": tuple(Row(**row) for row in document["rows"])})


def rows_of(ours: Figures, theirs: Figures | None = None, headlines: Collection[str] = (), **facts: Any) -> list[Row]:
    """Returns a row for each measure: medians over the rounds, and their ratio where there are several.

    Args:
        ours: of alternated rounds.
        theirs: of the same rounds.
        headlines: measures that the summary shows.
        facts: attributes of the rows, the same for all.
    """
    return [
        Row(
            measure=measure,
            ours=float(np.median(values)),
            theirs=float(np.median(theirs[measure])) if theirs else None,
            ratio=median_ratio(values, theirs[measure])
            if theirs and len(values) > 1 and all(theirs[measure])
            else None,
            is_headline=measure in headlines,
            **facts,
        )
        for measure, values in ours.items()
    ]


def commit_of(checkout: Path) -> str:
    """Returns the commit of a checkout, with "-dirty" if files were changed; "unknown" without git."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
