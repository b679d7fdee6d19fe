import importlib.util
from pathlib import Path

import pytest

from model.curve import can_draw, draw_curve


def test_drawing_needs_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert not can_draw()


@pytest.mark.parametrize("scores", [[], [(100, 12.5, 40.0), (200, 20.5, 45.0)]])
def test_a_curve_is_a_png(tmp_path: Path, scores: list[tuple[int, float, float]]) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "curve.png"

    draw_curve(path, "fr-en", [(50, 7.5), (100, 5.25)], scores)

    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    assert [each.name for each in tmp_path.iterdir()] == ["curve.png"]


def test_what_is_drawn_are_the_loss_and_both_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    drawn = []

    class Figure(figures.Figure):  # type: ignore[misc, name-defined]
        def savefig(self, *arguments: object, **more: object) -> None:
            drawn.extend(self.axes)
            super().savefig(*arguments, **more)

    monkeypatch.setattr(figures, "Figure", Figure)

    draw_curve(tmp_path / "curve.png", "fr-en: best 20.5", [(50, 7.5), (100, 5.25)], [(100, 12.5, 40.0)])

    lines = [[list(line.get_xdata()), list(line.get_ydata())] for axes in drawn for line in axes.get_lines()]
    assert lines == [[[50, 100], [7.5, 5.25]], [[100], [12.5]], [[100], [40.0]]]
    assert drawn[0].get_title() == "fr-en: best 20.5"
