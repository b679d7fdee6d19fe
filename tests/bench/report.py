"""Tables for people."""

from collections.abc import Sequence

from tabulate import tabulate

from tests.bench.record import Row


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a Markdown table, numbers to three digits."""
    print(f"\n{title}\n", markdown(header, rows), sep="\n", flush=True)


def print_rows(title: str, rows: Sequence[Row]) -> None:
    """Prints what was measured as a table; all of it against the same."""
    cells = [[row.setting, row.measure, row.ours, row.theirs, row.quotient] for row in rows]
    print_table(title, ["setting", "measure", "ours", rows[0].against, "ratio"], cells)


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Returns a Markdown table: floats with three digits or all those before the point, None as nothing."""
    cells = [[_format(value) for value in row] for row in rows]
    return str(tabulate(cells, header, "github", disable_numparse=True))


def _format(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return "" if value is None else str(value)
