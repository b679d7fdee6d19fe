"""Tables for people, JSON for programs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a Markdown table, numbers to three digits."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print(f"\n{title}\n", *lines, sep="\n", flush=True)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Writes all results; the directory is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, default=str) + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    return (
        f"{value:.0f}"
        if isinstance(value, float) and abs(value) >= 100
        else (f"{value:.3g}" if isinstance(value, float) else str(value))
    )
