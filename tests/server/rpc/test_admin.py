"""ModelAdmin on the admin port of a real server, before models that are real."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from babelserve.v1 import model_admin_pb2 as pb
from babelserve.v1.model_admin_pb2_grpc import ModelAdminStub
from server.access.access import Access
from server.access.keys import hash_key
from server.bundle.bundle import Bundle
from server.rpc.admin import ADMIN_NAME, ModelAdminService
from server.telemetry.catalogue_metrics import ADMIN_METHODS
from server.telemetry.metrics import Metrics
from tests.server.models.administered import Add, Served, until
from tests.server.rpc.parts import SECONDS, Open, started, told

KEY = (("authorization", "Bearer the key"),)
STATES = pb.VersionStatus


class Admin:
    """A client of the server's admin port, and the models behind it."""

    def __init__(self, channel: grpc.aio.Channel, served: Served, service: ModelAdminService) -> None:
        self.stub: Any = ModelAdminStub(channel)
        self.channel = channel
        self.served = served
        self.service = service

    async def call(self, method: str, message: Any) -> Any:
        return await getattr(self.stub, method)(message, timeout=SECONDS, metadata=KEY)

    async def refusal(self, method: str, message: Any) -> tuple[grpc.StatusCode, str]:
        return await told(getattr(self.stub, method)(message, timeout=SECONDS, metadata=KEY))


@pytest_asyncio.fixture
async def admin(opening: Open, metrics: Metrics, tiny_bundle: Bundle, tmp_path: Path) -> AsyncIterator[Admin]:
    keys = tmp_path / "admins.toml"
    keys.write_text(f'[[tenants.ops.keys]]\nsha256 = "{hash_key("the key").hex()}"\n')
    access, add = Access(metrics.access, admin_keys=keys), Add(tmp_path / "models", tiny_bundle.directory)
    for path in ("m/1", "m/2", "n"):
        add(path)
    served = Served(add.models, metrics)
    await served.start()
    service = ModelAdminService(served.administration, access, metrics.catalogue)
    async with (
        started(opening(access, model_admin=service)) as servers,
        grpc.aio.insecure_channel(f"127.0.0.1:{servers.ports[2]}") as channel,
    ):
        yield Admin(channel, served, service)
    await served.stop()


def share(**percents: int) -> list[pb.TrafficShare]:
    return [pb.TrafficShare(version=version[1:], percent=percent) for version, percent in percents.items()]


async def test_a_version_is_loaded_gets_traffic_and_is_rolled_back_and_each_step_is_logged_and_counted(
    admin: Admin, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    loaded = await admin.call("Load", pb.LoadRequest(model="m", version="1"))
    shared = await admin.call("SetTraffic", pb.SetTrafficRequest(model="m", traffic=share(v1=10, v2=90)))
    back = await admin.call("Rollback", pb.RollbackRequest(model="m"))
    follows = await admin.call("Load", pb.LoadRequest(model="m"))
    gone = await admin.call("Unload", pb.UnloadRequest(model="n"))
    listed = await admin.call("ListVersions", pb.ListVersionsRequest())

    two = pb.VersionStatus(version="2", state=STATES.LOADED, traffic_percent=100)
    assert loaded == pb.ModelStatus(model="m", versions=[two, pb.VersionStatus(version="1", state=STATES.LOADED)])
    assert [each.traffic_percent for each in shared.versions] == [90, 10]
    one = pb.VersionStatus(version="1", state=STATES.AVAILABLE)
    assert back == pb.ModelStatus(model="m", versions=[two, one])
    assert follows == pb.ModelStatus(model="m", follows_folder=True, versions=[two, one])
    assert list(listed.models) == [follows, gone]
    lines = [vars(record)["facts"] for record in caplog.records if record.getMessage() == "model admin"]
    assert [(line["method"], line["code"], line["operator"]) for line in lines] == [
        (method, "OK", "ops") for method in ("Load", "SetTraffic", "Rollback", "Load", "Unload", "ListVersions")
    ]
    assert (lines[0]["model"], lines[0]["model_version"], lines[1]["traffic"]) == ("m", "1", "1=10, 2=90")
    counts = [
        metrics.registry.get_sample_value("babelserve_model_admin_requests_total", {"method": method, "code": "OK"})
        for method in ADMIN_METHODS
    ]
    assert counts == [1, 2, 1, 1, 1]


async def test_faults_are_named(admin: Admin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    twice = [*share(v2=50), *share(v2=50)]
    refusals = [
        await admin.refusal("Load", pb.LoadRequest()),
        await admin.refusal("Load", pb.LoadRequest(model="m", version="7")),
        await admin.refusal("Unload", pb.UnloadRequest(model="m", version="2")),
        await admin.refusal("Rollback", pb.RollbackRequest(model="a text\n")),
        await admin.refusal("SetTraffic", pb.SetTrafficRequest(model="m", traffic=twice)),
        await admin.refusal("SetTraffic", pb.SetTrafficRequest(model="m", traffic=share(v2=99))),
    ]

    code = grpc.StatusCode
    assert refusals == [
        (code.INVALID_ARGUMENT, "model: is required"),
        (code.NOT_FOUND, "version: 7 of m is not in the folder; there: 2, 1"),
        (
            code.FAILED_PRECONDITION,
            "version: 2 of m has 100 percent of the requests; SetTraffic gives them to others",
        ),
        (code.NOT_FOUND, "model: a value of 7 characters is not loaded; loaded are m, n"),
        (code.INVALID_ARGUMENT, "traffic: must name each version once"),
        (code.INVALID_ARGUMENT, "traffic: must be percents from 0 to 100 that add up to 100, not 99"),
    ]
    lines = [vars(record)["facts"] for record in caplog.records if record.getMessage() == "model admin"]
    assert [(line["code"], line["error"]) for line in lines] == [(each.name, text) for each, text in refusals]


async def test_bytes_that_are_no_message_are_refused(admin: Admin) -> None:
    channel: Any = admin.channel
    call = channel.unary_unary(f"/{ADMIN_NAME}/Load")(b"\xff", timeout=SECONDS, metadata=KEY)

    assert await told(call) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "request: is no valid protobuf message, or holds text that is no UTF-8",
    )


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer another"),), (("x-api-key", "the kex"),)])
async def test_nothing_is_done_for_who_has_no_key(
    admin: Admin, metrics: Metrics, metadata: tuple[tuple[str, str], ...]
) -> None:
    unload = admin.stub.Unload(pb.UnloadRequest(model="m"), timeout=SECONDS, metadata=metadata)

    code, _ = await told(unload)

    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert admin.served.all_go_to("2")
    labels = {"method": "Unload", "code": "UNAUTHENTICATED"}
    assert metrics.registry.get_sample_value("babelserve_model_admin_requests_total", labels) == 1


async def test_a_change_is_ended_though_its_caller_leaves(admin: Admin) -> None:
    async with admin.served.loader.turn:  # or it might be over before
        call = admin.stub.Load(pb.LoadRequest(model="m", version="1"), timeout=SECONDS, metadata=KEY)
        await until(lambda: len(admin.service._running) == 1)
        call.cancel()
        assert await call.code() is grpc.StatusCode.CANCELLED

    await until(lambda: len(admin.served.catalogue.loaded("m")[0]) == 2)


async def test_an_error_of_our_own_is_answered_with_fixed_words(
    admin: Admin, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(admin.served.loader, "found", broken)

    code, text = await admin.refusal("ListVersions", pb.ListVersionsRequest())

    assert (code, text) == (grpc.StatusCode.INTERNAL, "internal error; the server's log says more")
    assert "a change of the models failed by an error of the server's own" in caplog.text


async def test_without_keys_nobody_answers(opening: Open) -> None:
    async with started(opening()) as servers, grpc.aio.insecure_channel(f"127.0.0.1:{servers.ports[2]}") as channel:
        stub: Any = ModelAdminStub(channel)
        code, _ = await told(stub.ListVersions(pb.ListVersionsRequest(), timeout=SECONDS, metadata=KEY))

    assert code is grpc.StatusCode.UNIMPLEMENTED
