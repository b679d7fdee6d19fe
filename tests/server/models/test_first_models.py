"""A server that starts on bundles that do not end, or take all memory: in processes, as nothing else ends these."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from tests.acceptance.server_process import launch_server
from tests.chaos.hostile_bundles import BUNDLES

FLAGS = ["--variant", "cpu-fp32", "--lanes", "1"]


@pytest.fixture
def models(tmp_path: Path, tiny_bundle: Bundle) -> Path:
    shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "a-good")
    return tmp_path / "models"


def spoilt(tiny_bundle: Bundle, directory: Path, kind: str) -> Path:
    shutil.copytree(tiny_bundle.directory, directory)
    BUNDLES[kind](directory)
    return directory


@pytest.mark.timeout(120)
def test_a_signal_ends_a_server_whose_bundle_does_not(tmp_path: Path, tiny_bundle: Bundle) -> None:
    bundle = spoilt(tiny_bundle, tmp_path / "endless", "products")
    server = launch_server(tmp_path / "stderr.log", [*FLAGS, "--bundle", str(bundle)])
    time.sleep(4.0)  # for the load to begin; if it has not, there is less to end

    os.kill(server.process.pid, signal.SIGTERM)

    assert server.process.wait(60) == 0


@pytest.mark.timeout(180)
def test_a_server_begins_anew_if_a_bundle_of_a_folder_takes_all_memory(models: Path, tiny_bundle: Bundle) -> None:
    spoilt(tiny_bundle, models / "b-bad", "constant-of-shape")
    server = launch_server(models.parent / "stderr.log", [*FLAGS, "--models", str(models)])
    try:
        while "SERVING" not in (written := server.stderr()) and server.process.poll() is None:
            time.sleep(0.1)
    finally:
        code = server.stop()

    assert code == 0
    assert "takes more than" in written
    assert "begins anew" in written
    assert "SERVING a-good" in written
