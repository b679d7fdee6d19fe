"""Whether texts can pass through the languages of `--pivot`."""

from collections.abc import Sequence

from server.bundle.codes import CodeTable
from server.bundle.manifest import Manifest

_FEW = 12  # codes that are named


def pivot_faults(pivots: Sequence[str], manifests: Sequence[Manifest]) -> list[str]:
    """Says of which pivots nothing comes, as no model translates into them or none from them.

    Args:
        pivots: BCP-47 codes.
        manifests: of the models that are served.
    """
    sources = sorted({code for each in manifests for code in each.source_codes})
    targets = sorted({code for each in manifests for code in each.target_codes})
    tables = CodeTable(sources), CodeTable(targets)
    return [
        f"--pivot: no text can pass through {pivot}: models translate from {_named(sources)} into {_named(targets)}"
        for pivot in pivots
        if any(table.find(pivot) is None for table in tables)
    ]


def _named(codes: Sequence[str]) -> str:
    more = f" and {len(codes) - _FEW} more" if len(codes) > _FEW else ""
    return ", ".join(codes[:_FEW]) + more
