"""Pictures of what networks cost and are worth, drawn by Matplotlib from the figures of `tests.bench.networks`."""

import statistics
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.network_steps import ROWS

_MARKERS = "os^Dv<>p*hXP"


def draw(networks: dict[str, Any], folder: Path) -> list[Path]:
    """Draws quality against speed, quality by the length of the source, and the time of a step by its position.

    Args:
        networks: the figures of each network by its name, as `tests.bench.networks` keeps them.
        folder: for the pictures; it is made if it is not there.

    Returns:
        The files, PNG.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"speed": _speed(networks), "length": _length(networks), "steps": _steps(networks)}
    paths = []
    for name, figure in pictures.items():
        paths.append(folder / f"networks-{name}.png")
        figure.savefig(paths[-1], dpi=100)
    return paths


def _speed(networks: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    for place, measure in enumerate(("tokens/s", "alone ms"), start=1):
        axes = figure.add_subplot(1, 2, place, xlabel=measure, ylabel="chrF, mean of the domains")
        for style, (name, found) in zip(_styles(networks), networks.items(), strict=True):
            chrf = statistics.fmean(domain["scores"]["all"]["chrf"][0] for domain in found["domains"].values())
            axes.plot([found[measure]], [chrf], label=name, linestyle="", **style)
        axes.grid(alpha=0.3)
    _explain(figure, axes)
    return figure


def _length(networks: dict[str, Any]) -> Figure:
    domains = list(next(iter(networks.values()))["domains"])
    figure = Figure(figsize=(5 * len(domains), 4.5), layout="constrained")
    for place, domain in enumerate(domains, start=1):
        axes = figure.add_subplot(1, len(domains), place, title=domain, xlabel="words of the source", ylabel="chrF")
        for style, (name, found) in zip(_styles(networks), networks.items(), strict=True):
            scores = {length: each["chrf"][0] for length, each in found["domains"][domain]["scores"].items()}
            del scores["all"]
            axes.plot(list(scores), list(scores.values()), label=name, **style)
        axes.grid(alpha=0.3)
    _explain(figure, axes)
    return figure


def _steps(networks: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel="position in the translation", ylabel=f"microseconds of a step of {ROWS} rows")
    for style, (name, found) in zip(_styles(networks), networks.items(), strict=True):
        if times := found["step us by position"]:
            axes.plot([int(position) for position in times], list(times.values()), label=name, **style)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    _explain(figure, axes)
    return figure


def _styles(networks: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the marker and the colour of each network, the same in all pictures."""
    colors = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]  # of the class that this one is of
    return [
        {"marker": _MARKERS[index % len(_MARKERS)], "color": colors[index % len(colors)]}
        for index in range(len(networks))
    ]


def _explain(figure: Figure, axes: Axes) -> None:
    """Names the networks at the right, once for all parts of a picture."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize="small")
