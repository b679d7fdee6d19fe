"""What a command does with the list of a server's models: shows it, and takes a target language from it."""

from collections.abc import Sequence

from client.results import ModelInfo

_MOST_SHOWN = 8  # languages, or pairs


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


def table(models: Sequence[ModelInfo]) -> str:
    """Returns the models as lines of aligned columns, the first with their names."""
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
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _languages(info: ModelInfo) -> str:
    if info.language_pairs:
        return _listed([f"{source} to {target}" for source, target in info.language_pairs])
    return f"any of {_listed(info.source_languages)} to any of {_listed(info.target_languages)}"


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MOST_SHOWN} more" if len(words) > _MOST_SHOWN else ""
    return ", ".join(words[:_MOST_SHOWN]) + more
