"""`curve.png`: the loss of a training run and its scores on the dev set, drawn by Matplotlib."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from model.files import replacing


def can_draw() -> bool:
    """Whether Matplotlib is installed, which the extra `train` brings."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_curve(
    path: Path, title: str, losses: Sequence[tuple[int, float]], scores: Sequence[tuple[int, float, float]]
) -> None:
    """Draws a PNG, whole or not at all.

    Args:
        path: the file.
        title: above the picture.
        losses: steps, and the mean loss of each since the one before, in nats per target token.
        scores: steps, and the dev set's BLEU and chrF there.

    Raises:
        OSError: it cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  # takes a second, and may be missing

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    left = figure.add_subplot(title=title, xlabel="step", ylabel="loss (nats per target token)")
    left.plot([step for step, _ in losses], [loss for _, loss in losses], color="tab:blue", label="training loss")
    left.grid(alpha=0.3)
    right = left.twinx()
    right.set_ylabel("dev set, greedy")
    for index, (name, color) in enumerate((("BLEU", "tab:orange"), ("chrF", "tab:green")), start=1):
        steps, values = [score[0] for score in scores], [score[index] for score in scores]
        right.plot(steps, values, color=color, marker="o", markersize=3, label=name)
    handles = [*left.get_lines(), *right.get_lines()]
    left.legend(handles, [str(line.get_label()) for line in handles], loc="center right")
    with replacing(path) as draft:
        figure.savefig(draft, format="png", dpi=120)
