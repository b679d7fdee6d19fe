"""What a command does with the lists of a server's models and glossaries: shows them, and takes a target language."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence

from babelserve.results import ModelInfo
from babelserve.terminal import in_one_line
from babelserve.terms import GlossaryInfo

_MOST_SHOWN = 8  # languages, or pairs
_WIDEST = 40  # characters that a column is padded to
# Pairs that are looked at. Half would leave out some of 700 languages, twice takes two seconds.
_MOST_PAIRS = 500_000


def only_target(models: Sequence[ModelInfo], *, model: str | None, source: str | None) -> str:
    """Returns the language that a server translates into, where there is only one.

    Args:
        models: of the server.
        model: name of the one to ask; None: any.
        source: code of the source language; None: any.

    Raises:
        ValueError: the server has no model of that name, or there are several languages, or none.
    """
    names = ", ".join(info.name for info in models) or "none"
    chosen = [info for info in models if model in (None, info.name)]
    if model is not None and not chosen:
        raise ValueError(f"the server has no model {model}; it has: {names}")
    pairs = [pair for info in chosen for pair in info.language_pairs]
    targets = {pair[1] for pair in pairs if pair[0] == source} or {
        target for info in chosen for target in info.target_languages
    }
    if len(targets) != 1:
        raise ValueError(f"a target language must be named; the server has: {', '.join(sorted(targets)) or 'none'}")
    return targets.pop()


def table(models: Sequence[ModelInfo], pivots: Sequence[str] = ()) -> str:
    """Returns the models as lines of aligned columns, the first with their names; then a line for each pivot.

    Args:
        models: of the server.
        pivots: of the server: languages between two models. Their pairs are found by codes as they are written.
    """
    rows = [("NAME", "VERSION", "VARIANT", "BEAM", "SHORTLIST", "LANGUAGES")]
    rows += [
        (
            info.name,
            info.version,
            info.variant,
            f"to {info.max_beam_size}",
            "yes" if info.has_shortlist else "no",
            _languages(info),
        )
        for info in models
    ]
    lines = _aligned(rows)
    lines += [
        in_one_line(f"over {pivot}: {_directions(pairs)}") for pivot, pairs in _pivoted_pairs(models, pivots).items()
    ]
    return "\n".join(lines)


def glossary_table(glossaries: Sequence[GlossaryInfo]) -> str:
    """Returns the glossaries as lines of aligned columns, the first with their names."""
    rows = [("NAME", "VERSION", "TERMS", "LANGUAGES")]
    rows += [(info.name, info.version, str(info.num_terms), f"{info.source} to {info.target}") for info in glossaries]
    return "\n".join(_aligned(rows))


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    shown = [[in_one_line(cell) for cell in row] for row in rows]
    widths = [min(_WIDEST, max(len(row[column]) for row in shown)) for column in range(len(rows[0]))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]


def _pivoted_pairs(models: Sequence[ModelInfo], pivots: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Returns the pairs that no model translates and two do, by the first pivot that joins them."""
    direct = dict.fromkeys(itertools.islice(itertools.chain.from_iterable(map(_pairs, models)), _MOST_PAIRS))
    before, behind = defaultdict(list), defaultdict(list)
    for source, target in direct:
        before[target].append(source)
        behind[source].append(target)
    joined = (
        (pair, pivot) for pivot in dict.fromkeys(pivots) for pair in itertools.product(before[pivot], behind[pivot])
    )
    pivot_of: dict[tuple[str, str], str] = {}
    for pair, pivot in itertools.islice(joined, _MOST_PAIRS):
        if pair[0] != pair[1] and pair not in direct:
            pivot_of.setdefault(pair, pivot)
    pairs_of = defaultdict(list)
    for pair, pivot in pivot_of.items():
        pairs_of[pivot].append(pair)
    return pairs_of


def _pairs(info: ModelInfo) -> Iterable[tuple[str, str]]:
    return info.language_pairs or itertools.product(info.source_languages, info.target_languages)


def _languages(info: ModelInfo) -> str:
    if info.language_pairs:
        return _directions(info.language_pairs)
    return f"any of {_listed(info.source_languages)} to any of {_listed(info.target_languages)}"


def _directions(pairs: Sequence[tuple[str, str]]) -> str:
    return _listed([f"{source} to {target}" for source, target in pairs])


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MOST_SHOWN} more" if len(words) > _MOST_SHOWN else ""
    return ", ".join(words[:_MOST_SHOWN]) + more
