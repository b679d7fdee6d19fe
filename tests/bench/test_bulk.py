"""What the benchmark of bulk jobs runs beside a job; speeds are not tested."""

from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from server.decoding.result import Result
from server.engine.engine import Engine
from tests.bench.bulk import compare


def test_the_engine_alone_gets_the_sentences_of_the_job_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, output = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("A dog runs.\nTwo dogs run over a green field. Three dogs sleep.\n" * 20)
    submitted: list[list[Iterable[int]]] = []
    submit = Engine.submit

    def noted(engine: Engine, sources: Iterable[Iterable[int]], *others: Any) -> list[Future[Result]]:
        submitted.append(list(sources))
        return submit(engine, submitted[-1], *others)

    monkeypatch.setattr(Engine, "submit", noted)
    times = compare([str(text), "--out", str(output), "--target", "de", "--beam-size", "1"], [])

    _, *of_job, alone = submitted  # the first one warms the model up
    assert len(of_job) > 1
    assert sorted(map(tuple, alone)) == sorted(tuple(each) for sources in of_job for each in sources)
    assert [len(list(each)) for each in alone] == sorted((len(list(each)) for each in alone), reverse=True)
    assert len((output / "00000-000000.txt").read_text().splitlines()) == 40
    assert all(min(each) > 0 for each in times)
