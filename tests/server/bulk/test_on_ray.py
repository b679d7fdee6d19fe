"""The same job on a real Ray of this machine; skipped where Ray is not installed (the extra `ray`)."""

from pathlib import Path

import pytest

from server.bulk.worker import Done, Worker
from tests.server.bulk.parts import job_of, output

pytest.importorskip("ray")


@pytest.mark.filterwarnings("ignore")
def test_the_output_is_that_of_one_process(tmp_path: Path) -> None:
    from server.bulk import on_ray  # noqa: PLC0415

    alone, spread = (job_of(tmp_path, output=str(tmp_path / name)) for name in ("alone", "spread"))
    worker = Worker(alone)
    worker.run(alone.plan(), lambda _: None)
    worker.close()
    done: list[Done] = []
    on_ray.run(spread, spread.plan(), 2, done.append)

    assert output(tmp_path / "spread") == output(tmp_path / "alone")
    assert sum(each.rows for each in done) == 20
    assert spread.left(spread.plan()) == []
