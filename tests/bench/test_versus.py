"""That each side of a comparison runs its own checkout's code, whatever its layout; speeds are not tested."""

from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from server.settings.settings import Settings as ServerSettings
from tests.bench.rounds import turns
from tests.bench.systems import Settings
from tests.bench.text import ROOT
from tests.bench.worker import Worker
from tests.bench.worker_process import read_settings

OLD_SYSTEMS = """
from collections.abc import Sequence
from dataclasses import dataclass

Ids = Sequence[int]


@dataclass
class Settings:
    system: str
    path: str
    batch: int


class System:
    def __init__(self, settings):
        self.batch = settings.batch

    def translate(self, sources, beam_size):
        return [[self.batch, beam_size] for _ in sources]

    def padding_share(self, sources):
        return 0.0

    def close(self):
        pass


open_system = System


def peak_resident_bytes():
    return 1
"""


@pytest.fixture
def old_checkout(tmp_path: Path) -> Path:
    """A checkout whose server has its settings in one module, and whose benchmark knows fewer."""
    files = {
        "tests/__init__.py": "",
        "tests/bench/__init__.py": "",
        "tests/bench/systems.py": OLD_SYSTEMS,
        "server/__init__.py": "",
        "server/settings.py": "class Settings:\n    max_rows = 7\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_worker_runs_the_other_checkout_with_its_own_defaults(old_checkout: Path) -> None:
    settings = Settings(system="ours", path="a bundle", precision="cpu-int8", batch=0, checkout=str(old_checkout))

    with Worker(settings) as worker:
        found = worker.translate([[5, 3]], beam_size=4, with_ids=True)

    assert found["ids"] == [[7, 4]]
    assert found["peak_resident_bytes"] == 1


def test_a_worker_runs_this_checkout(tiny_bundle: Bundle, sources: list[list[int]]) -> None:
    path = str(tiny_bundle.directory)
    settings = Settings(system="ours", path=path, precision="cpu-fp32", batch=0, workers=1, checkout=str(ROOT))

    with Worker(settings) as worker:
        together = worker.translate(sources[:3], beam_size=1, with_ids=True)
        alone = worker.translate(sources[:3], beam_size=1, one_by_one=True)

    assert together["lengths"] == alone["lengths"] == [len(ids) for ids in together["ids"]]
    assert len(alone["latencies"]) == 3


def test_a_batch_of_nothing_is_the_servers_default() -> None:
    given = {"system": "ours", "path": "", "precision": "cpu-int8", "batch": 0, "of a later commit": 1}

    assert read_settings(given).batch == ServerSettings().max_rows


def test_both_sides_take_turns_and_none_is_always_first() -> None:
    assert list(turns(["ours", "other"], 2)) == [
        (-1, "ours"),
        (-1, "other"),
        (0, "other"),
        (0, "ours"),
        (1, "ours"),
        (1, "other"),
    ]
