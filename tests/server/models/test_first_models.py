"""A server that starts on bundles that do not end, or take all memory: in processes, as nothing else ends these."""

import shutil
import time
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from server.bundle.bundle import Bundle
from tests.acceptance.server_process import launch_server
from tests.chaos.hostile_bundles import BUNDLES
from tests.chaos.observations import resources

FLAGS = ["--variant", "cpu-fp32", "--lanes", "1"]


@pytest.fixture
def models(tmp_path: Path, tiny_bundle: Bundle) -> Path:
    shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "a-good")
    return tmp_path / "models"


def spoilt(tiny_bundle: Bundle, directory: Path, kind: str) -> Path:
    shutil.copytree(tiny_bundle.directory, directory)
    BUNDLES[kind](directory)
    return directory


def test_a_signal_ends_a_server_whose_bundle_does_not(tmp_path: Path, tiny_bundle: Bundle) -> None:
    bundle = spoilt(tiny_bundle, tmp_path / "endless", "products")
    server = launch_server(tmp_path / "stderr.log", [*FLAGS, "--bundle", str(bundle)])
    with grpc.insecure_channel(server.health_address) as channel:
        answer = HealthStub(channel).Check(HealthCheckRequest(service="liveness"), wait_for_ready=True)
    before = resources(server.process.pid).cpu_seconds
    while resources(server.process.pid).cpu_seconds < before + 2.0:  # a good bundle is loaded by then
        time.sleep(0.05)

    assert answer.status == HealthCheckResponse.SERVING
    assert server.stop() == 0


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
