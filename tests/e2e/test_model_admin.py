"""A version that `babelserve-models` gives a share of the requests, under load, and takes back."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from babelserve.v1 import translation_pb2 as pb
from export.subject import DevSet
from server.access.keys import hash_key, new_key
from server.bundle.bundle import Bundle
from server.models.traffic_split import TrafficSplit
from tests.acceptance.calls import open_stub
from tests.acceptance.model_swaps import put
from tests.acceptance.server_process import ServerProcess, running_server
from tests.e2e.conftest import metric, wait_for_metric

TIMEOUT = 200.0
ROOT = Path(__file__).parents[2]


class Operator:
    """Calls a server's admin port by the command."""

    def __init__(self, server: ServerProcess, key_file: Path) -> None:
        self.server, self.key_file = server, key_file

    def run(self, *arguments: str) -> tuple[int, str]:
        address = f"127.0.0.1:{self.server.admin_port}"
        command = [sys.executable, "-m", "babelserve.admin", "--address", address, "--api-key-file", str(self.key_file)]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, cwd=ROOT, text=True, timeout=TIMEOUT, check=False
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def operator(tiny_bundle: Bundle, tmp_path: Path) -> Iterator[Operator]:
    key, admins = new_key(), tmp_path / "admins.toml"
    (tmp_path / "key").write_text(key)
    admins.write_text(f'[[tenants.ops.keys]]\nsha256 = "{hash_key(key).hex()}"\n')
    for version in ("1", "2"):
        put(tiny_bundle.directory, tmp_path / "models" / "m" / version)
    flags = ["--models", str(tmp_path / "models"), "--variant", "cpu-fp32", "--lanes", "1", "--admin-keys", str(admins)]
    with running_server(flags) as server:
        yield Operator(server, tmp_path / "key")


def test_a_new_version_gets_its_share_is_judged_by_its_metrics_and_rolled_back(
    operator: Operator, dev_set: DevSet
) -> None:
    server = operator.server
    assert operator.run("load", "m", "1") == (
        0,
        "m (pinned: new versions in its folder are not taken)\n  2  loaded  100 %\n  1  loaded  0 %\n",
    )
    assert operator.run("traffic", "m", "2=70", "1=30")[0] == 0
    keys = [f"user {number}" for number in range(60)] * 2
    with open_stub(server.address) as stub:

        def ask(key: str) -> str:
            message = pb.TranslateRequest(contents=dev_set.sources[:2], target_language_code="de", traffic_key=key)
            answer: pb.TranslateResponse = stub.Translate(message, timeout=TIMEOUT)
            return answer.model_version

        with ThreadPoolExecutor(4) as callers:
            before = list(callers.map(ask, keys))
            back = callers.submit(operator.run, "rollback", "m")
            during = list(callers.map(ask, keys))  # no call fails
            assert back.result() == (
                0,
                "m (pinned: new versions in its folder are not taken)\n  2  loaded  100 %\n  1  available  0 %\n",
            )
            after = set(callers.map(ask, keys))

    split = TrafficSplit.of({"1": 30, "2": 70})
    assert before == [split.choose("m", key) for key in keys]
    assert set(during) <= {"1", "2"}
    assert after == {"2"}
    answered = before + during
    for version in ("1", "2"):
        labels = {"model": "m", "version": version, "code": "OK"}
        expected = answered.count(version) + (len(keys) if version == "2" else 0)
        assert metric(server, "model_requests_total", **labels) == expected
    assert metric(server, "model_requests_total") == 3 * len(keys)
    wait_for_metric(server, 1, "models", state="loaded")
    wait_for_metric(server, 0, "models", state="retired")
    assert metric(server, "model_admin_requests_total", code="OK") == 3
    assert '"event": "model admin", ' in server.stderr()
    assert '"operator": "ops"' in server.stderr()


def test_refusals_name_their_reason(operator: Operator) -> None:
    exit_code, text = operator.run("traffic", "m", "1=100")

    assert exit_code == 2
    assert "FAILED_PRECONDITION: traffic: 1 is not loaded; loaded are 2" in text
    operator.key_file.write_text(new_key())
    assert operator.run("rollback", "m")[0] == 2
    assert metric(operator.server, "model_admin_requests_total", code="UNAUTHENTICATED") == 1
