"""Tables, and text of the source, as Markdown."""

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_\[\]{}])")
_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
_ADDRESS = re.compile(r"https?://\S*\w/?")


def prose(text: str) -> str:
    """Returns text such that Markdown shows it as it is, but for what stands in backticks, flags and addresses.

    Line breaks within a paragraph are taken out.
    """
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if i % 2 else _escape(part) for i, part in enumerate(parts))


def _escape(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    text = _FLAG.sub(r"`\1`", _ADDRESS.sub(r"<\g<0>>", text))
    parts = re.split(r"(`[^`]*`|<[^>]*>)", text)
    return "".join(part if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))


def code(text: object) -> str:
    """Returns text as code, nothing as nothing; text has no backticks."""
    return f"`{text}`" if str(text) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table of cells that are Markdown already; columns without anything in them are left out."""
    rows = list(rows)
    used = [i for i in range(len(head)) if any(row[i] for row in rows)]
    lines = [[head[i] for i in used], ["---"] * len(used), *([row[i] for i in used] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(*blocks: str) -> str:
    """Joins blocks into a page; those that are empty are left out."""
    return "\n\n".join(block.strip() for block in blocks if block.strip()) + "\n"
