"""Tables for people, JSON for programs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a Markdown table, numbers to three digits."""
    cells = [[format_number(value) for value in row] for row in rows]
    print(f"\n{title}\n", tabulate(cells, header, "github", disable_numparse=True), sep="\n", flush=True)


def format_number(value: object) -> str:
    """Returns a float with three digits, or all those before the point; anything else as it is."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Writes all results; the directory is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, default=str) + "\n", encoding="utf-8")
