"""Several models in one server: which one answers, and what becomes of the callers when a model is exchanged."""

import json
import math
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from babelserve.v1 import translation_pb2 as pb
from export.subject import DevSet
from server.bundle.bundle import Bundle
from server.models.loading import needed_bytes
from tests.acceptance.bad_bundles import BadBundle, absurd_bundles, bad_bundles
from tests.acceptance.calls import open_stub
from tests.acceptance.model_swaps import change_search, put, rss_mib, swap_under_load
from tests.acceptance.server_process import ServerProcess, launch_server, running_server
from tests.e2e.conftest import metric, wait_for_metric, wait_until

TIMEOUT = 200.0
BROKEN = (
    *(f"weights.bin cut to {percent} %" for percent in (0, 1, 50, 99)),
    "a byte of weights.bin flipped",
    "another sha256",
    "other shapes",
    "decoder_step.onnx removed",
    "a smaller vocabulary",
    "no ONNX",
    "weights that are a link out",
    "weights outside",
)


@pytest.fixture
def models(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    """Two models: `first` with a version 1, and `second`, a bundle without versions."""
    put(tiny_bundle.directory, tmp_path / "models" / "first" / "1")
    put(tiny_bundle.directory, tmp_path / "models" / "second")
    return tmp_path / "models"


@pytest.fixture
def server(models: Path) -> Iterator[ServerProcess]:
    flags = ["--models", str(models), "--variant", "cpu-fp32", "--lanes", "1", "--default", "second"]
    with running_server(flags) as server:
        yield server


def request(*contents: str, model: str = "") -> pb.TranslateRequest:
    return pb.TranslateRequest(contents=contents, target_language_code="de", model=model)


def refusals(server: ServerProcess) -> dict[str, str]:
    """What the log says of versions that were refused."""
    lines = [json.loads(line) for line in server.stderr().splitlines() if line.startswith("{")]
    return {line["model_version"]: line["error"] for line in lines if line["event"] == "a model is refused"}


def test_each_request_goes_to_its_model_and_everything_names_it(server: ServerProcess, dev_set: DevSet) -> None:
    with open_stub(server.address) as stub:
        listed = stub.ListModels(pb.ListModelsRequest(), timeout=TIMEOUT).models
        answers = [
            stub.Translate(request(dev_set.sources[0], model=name), timeout=TIMEOUT) for name in ("", "first", "second")
        ]
        with pytest.raises(grpc.RpcError, match="third is not served here; second, first are"):
            stub.Translate(request("Hi.", model="third"), timeout=TIMEOUT)
    with grpc.insecure_channel(server.health_address) as channel:
        told = [
            HealthStub(channel).Check(HealthCheckRequest(service=name), timeout=TIMEOUT).status
            for name in ("first", "second", "readiness")
        ]

    assert [(each.name, each.version) for each in listed] == [("second", "0"), ("first", "1")]
    assert [(each.model, each.model_version) for each in answers] == [("second", "0"), ("first", "1"), ("second", "0")]
    assert len({each.translations[0].text for each in answers}) == 1
    assert told == [HealthCheckResponse.SERVING] * 3
    wait_until(
        lambda: [metric(server, "sentences_total", model=name, outcome="ok") for name in ("first", "second")] >= [1, 2]
    )
    assert server.stop() == 0
    assert '"model": "first", "model_version": "1"' in server.stderr()


def test_versions_are_exchanged_under_load_without_an_error_or_a_mixed_answer(
    server: ServerProcess, models: Path, tiny_bundle: Bundle, dev_set: DevSet
) -> None:
    result = swap_under_load(server, models / "first", tiny_bundle.directory, dev_set.sources[:8], num_swaps=4)

    assert result.faults == []
    assert result.num_answers > 20
    assert set(result.versions) == {"1", "2"}
    wait_for_metric(server, 4, "model_unloads_total", model="first", reason="replaced")
    assert metric(server, "models", state="retired") == 0


def test_broken_versions_are_refused_by_name_while_the_old_one_serves(
    server: ServerProcess, models: Path, tiny_bundle: Bundle, dev_set: DevSet
) -> None:
    known = {each.name: each for each in (*bad_bundles("cpu-fp32"), *absurd_bundles("cpu-fp32"))}
    cases: dict[str, BadBundle] = {str(100 + number): known[name] for number, name in enumerate(BROKEN)}
    staged = models.with_name("staged")
    for version, case in cases.items():
        shutil.copytree(tiny_bundle.directory, staged / version)
        case.spoil(staged / version)
    for version in cases:
        (staged / version).rename(models / "first" / version)

    wait_for_metric(server, len(cases), "model_loads_total", model="first", outcome="refused")
    with open_stub(server.address) as stub:
        answer = stub.Translate(request(dev_set.sources[0], model="first"), timeout=TIMEOUT)

    assert answer.model_version == "1"
    assert metric(server, "model_last_load_successful", model="first") == 0
    assert server.stop() == 0  # and its log is whole
    found = refusals(server)
    assert found.keys() == cases.keys()
    wrong = {
        case.name: found[version]
        for version, case in cases.items()
        if not all(word in found[version] for word in case.mentions if "FloatingPoint" not in word)
    }
    assert wrong == {}


def test_many_models_take_turns_in_a_memory_for_few(tiny_bundle: Bundle, tmp_path: Path, dev_set: DevSet) -> None:
    num_fitting, rng = 10, random.Random(7)
    names = [f"m{number}" for number in range(16)]  # each is proved once, in a process of its own
    for name in names:
        put(tiny_bundle.directory, tmp_path / "models" / name)
    budget_mib = math.ceil(num_fitting * needed_bytes(tiny_bundle.manifest, "cpu-fp32") / 2**20)
    flags = ["--models", str(tmp_path / "models"), "--variant", "cpu-fp32", "--lanes", "1", "--load", "on-demand"]
    with running_server([*flags, "--models-memory", str(budget_mib)]) as server, open_stub(server.address) as stub:
        stub.Translate(request(*dev_set.sources[:4], model=names[0]), timeout=TIMEOUT)  # loads what is no model's too
        before = rss_mib(server) - budget_mib / num_fitting

        def ask(number: int) -> tuple[str, pb.TranslateResponse]:
            name = rng.choice(names)
            return dev_set.sources[number % 20], stub.Translate(
                request(dev_set.sources[number % 20], model=name), timeout=TIMEOUT
            )

        with ThreadPoolExecutor(4) as callers:
            answers = list(callers.map(ask, range(120)))
        grown = rss_mib(server) - before
        loads, evictions = (metric(server, name) for name in ("model_loads_total", "model_unloads_total"))
        loaded = metric(server, "models", state="loaded")

    texts: dict[str, set[str]] = {}
    for source, answer in answers:
        texts.setdefault(source, set()).add(answer.translations[0].text)
    assert {len(found) for found in texts.values()} == {1}
    assert loaded == num_fitting
    assert loads == evictions + loaded > len(names)
    assert grown <= 1.1 * budget_mib


def test_a_folder_without_a_model_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "models" / "m").mkdir(parents=True)

    server = launch_server(tmp_path / "log", ["--models", str(tmp_path / "models")])

    assert server.process.wait(TIMEOUT) == 2
    assert f"--models: {tmp_path / 'models'} holds no model" in server.stderr()


def test_the_search_of_a_changed_version_is_another(tiny_bundle: Bundle, tmp_path: Path) -> None:
    put(tiny_bundle.directory, tmp_path / "b", change_search)

    assert '"length_penalty": 0.5' in (tmp_path / "b" / "manifest.json").read_text(encoding="utf-8")
