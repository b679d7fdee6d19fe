"""Which directions the pivots of `--pivot` make possible."""

from collections.abc import Sequence

from server.bundle.codes import CodeTable, few_of
from server.bundle.manifest import Manifest

_FEW = 12  # codes that a fault names


def pivot_faults(pivots: Sequence[str], manifests: Sequence[Manifest]) -> list[str]:
    """Returns a fault for each pivot that is of no use, because no model translates into it or none translates from it.

    Args:
        pivots: BCP-47 codes.
        manifests: of the served models.
    """
    sources = sorted({code for each in manifests for code in each.source_codes})
    targets = sorted({code for each in manifests for code in each.target_codes})
    tables = CodeTable(sources), CodeTable(targets)
    before, behind = few_of(sources, _FEW), few_of(targets, _FEW)
    return [
        f"--pivot: no text can pass through {pivot}: models translate from {before} into {behind}"
        for pivot in pivots
        if any(table.find(pivot) is None for table in tables)
    ]


def pivoted_pairs(pivots: Sequence[str], manifests: Sequence[Manifest]) -> dict[tuple[str, str], str]:
    """Returns the pairs that no model translates directly and two models do, each with its pivot.

    It follows the rules of `server.translation.routes`.

    Args:
        pivots: BCP-47 codes, in the order in which they are tried.
        manifests: of the served models.
    """
    tables = [(each, CodeTable(each.source_codes), CodeTable(each.target_codes)) for each in manifests]

    def is_direct(source: str, target: str) -> bool:
        found = ((each, sources.find(source), targets.find(target)) for each, sources, targets in tables)
        return any(from_ and into and each.find_pair(from_, into) for each, from_, into in found)

    pivot_of: dict[tuple[str, str], str] = {}
    for pivot in pivots:
        before = {code for each, _, targets in tables for code in each.sources_of(targets.find(pivot) or "")}
        behind = {code for each, _, _ in tables for code in each.target_codes if is_direct(pivot, code)}
        for source in sorted(before):
            same = CodeTable([source])
            for target in sorted(behind):
                if same.find(target) is None and not is_direct(source, target):
                    pivot_of.setdefault((source, target), pivot)
    return pivot_of
