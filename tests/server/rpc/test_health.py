"""Health behind a real gRPC server."""

import asyncio
import struct
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import pytest_asyncio
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse, HealthListRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from server.rpc.health import Health
from server.telemetry.metrics import Metrics
from tests.chaos.http2 import PREFACE, SETTINGS, frame, literal

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


@pytest.fixture
def health(metrics: Metrics) -> Health:
    return Health(metrics)


@pytest_asyncio.fixture
async def port(health: Health) -> AsyncIterator[int]:
    health.set_serving(False)
    health.set_alive(True)
    server = grpc.aio.server()
    health.add_to(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield port
    await server.stop(None)


@pytest_asyncio.fixture
async def stub(port: int) -> AsyncIterator[HealthStub]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield HealthStub(channel)


@pytest.mark.parametrize("name", ["", "babelserve.v1.TranslationService", "readiness"])
async def test_serving_is_told_under_each_name(health: Health, stub: HealthStub, name: str) -> None:
    before = await stub.Check(HealthCheckRequest(service=name))
    health.set_serving(True)
    after = await stub.Check(HealthCheckRequest(service=name))

    assert (before.status, after.status) == (NOT_SERVING, SERVING)


async def test_a_process_that_does_not_serve_is_alive(health: Health, stub: HealthStub) -> None:
    assert (await stub.Check(HealthCheckRequest(service="liveness"))).status == SERVING


async def test_watchers_see_each_change(health: Health, stub: HealthStub) -> None:
    watch = stub.Watch(HealthCheckRequest(service="readiness"))
    seen = [(await watch.read()).status]

    for is_serving in (True, False):
        health.set_serving(is_serving)
        seen.append((await watch.read()).status)
    watch.cancel()

    assert seen == [NOT_SERVING, SERVING, NOT_SERVING]


async def test_a_long_name_is_unknown_and_nothing_of_it_is_kept(stub: HealthStub) -> None:
    num_bytes, num_watches = 512 << 10, 4
    tracemalloc.start()
    watches = []
    for index in range(num_watches):  # paced by the intake, whose limits are tested with it
        watches.append(
            stub.Watch(HealthCheckRequest(service=f"{index}" * num_bytes), compression=grpc.Compression.Gzip)
        )
        assert (await watches[-1].read()).status == HealthCheckResponse.SERVICE_UNKNOWN
    kept = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/server/*")])
    tracemalloc.stop()

    assert sum(each.size for each in kept.statistics("filename")) < num_bytes
    for watch in watches:
        watch.cancel()


async def test_a_message_that_does_not_come_is_given_up(port: int) -> None:
    async def outcome(method: str) -> grpc.StatusCode:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
            raw: Any = channel
            code: grpc.StatusCode = await raw.stream_stream(f"/grpc.health.v1.Health/{method}")().code()
            return code

    codes = await asyncio.wait_for(asyncio.gather(*map(outcome, ("Check", "Watch", "List"))), 15)

    assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED}


async def test_a_call_without_a_message_is_refused(port: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        raw: Any = channel

        assert (
            await raw.stream_stream("/grpc.health.v1.Health/Check")(iter(())).code() is grpc.StatusCode.INVALID_ARGUMENT
        )


async def test_a_watcher_that_takes_no_answer_keeps_nobody_waiting(health: Health, stub: HealthStub, port: int) -> None:
    fields = {":method": "POST", ":scheme": "http", ":path": "/grpc.health.v1.Health/Watch", ":authority": "localhost"}
    fields |= {"te": "trailers", "content-type": "application/grpc"}
    head = b"".join(literal(name.encode(), value.encode()) for name, value in fields.items())
    no_window = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PREFACE + no_window + frame(1, 4, 1, head) + frame(0, 1, 1, bytes(5)))
    await reader.readuntil(b"application/grpc")  # the head of the answer; its body has no window

    health.begin_draining()
    health.set_serving(True)

    assert (await stub.Check(HealthCheckRequest())).status == SERVING
    writer.close()


async def test_an_unknown_name_is_not_found(stub: HealthStub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Check(HealthCheckRequest(service="other"))

    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


async def test_all_names_are_listed(health: Health, stub: HealthStub) -> None:
    health.set_serving(True)
    health.set_alive(False)

    listed = await stub.List(HealthListRequest())

    serving = dict.fromkeys(("", "babelserve.v1.TranslationService", "readiness"), SERVING)
    assert {name: each.status for name, each in listed.statuses.items()} == {**serving, "liveness": NOT_SERVING}


async def test_the_metrics_say_what_health_does(health: Health, metrics: Metrics) -> None:
    def gauges() -> list[float | None]:
        return [metrics.registry.get_sample_value(f"babelserve_{name}") for name in ("ready", "draining")]

    seen = [gauges()]
    health.set_serving(True)
    seen.append(gauges())
    watching = asyncio.create_task(health.watch(lambda: {"a": False}, lambda: False, tick_seconds=0.001))
    await watching
    seen.append(gauges())
    health.begin_draining()
    seen.append(gauges())

    assert seen == [[0, 0], [1, 0], [0, 0], [0, 1]]


@pytest.mark.parametrize("name", ["", "babelserve.v1.TranslationService", "readiness"])
async def test_readiness_follows_what_is_watched(health: Health, stub: HealthStub, name: str) -> None:
    ready = True
    health.set_serving(True)
    watching = asyncio.create_task(health.watch(lambda: {"a": True, "b": ready}, lambda: True, tick_seconds=0.001))
    watch = stub.Watch(HealthCheckRequest(service=name))
    seen = [(await watch.read()).status]

    ready = False
    seen.append((await watch.read()).status)
    ready = True
    seen.append((await watch.read()).status)
    health.set_serving(False)  # a drain, which what is watched does not end
    seen.append((await watch.read()).status)
    await asyncio.sleep(0.01)
    seen.append((await stub.Check(HealthCheckRequest(service=name))).status)
    watching.cancel()
    watch.cancel()

    assert seen == [SERVING, NOT_SERVING, SERVING, NOT_SERVING, NOT_SERVING]


async def test_watching_ends_with_the_engine_and_the_loops_lag_is_measured(
    health: Health, stub: HealthStub, metrics: Metrics
) -> None:
    alive = True
    watching = asyncio.create_task(health.watch(lambda: {"a": alive}, lambda: alive, tick_seconds=0.001))
    watch = stub.Watch(HealthCheckRequest(service="liveness"))
    seen = [(await watch.read()).status]

    alive = False
    seen.append((await watch.read()).status)
    await watching
    watch.cancel()

    assert seen == [SERVING, NOT_SERVING]
    count = metrics.registry.get_sample_value("babelserve_event_loop_lag_seconds_count")
    assert count is not None
    assert count > 0


async def test_each_model_is_told_by_its_name_and_what_has_gone_is_not_serving(
    health: Health, stub: HealthStub
) -> None:
    ready = {"en-de": True, "de-en": False}
    health.set_serving(True)
    watching = asyncio.create_task(health.watch(lambda: ready, lambda: True, tick_seconds=0.001))

    async def told(name: str) -> int:
        return int((await stub.Check(HealthCheckRequest(service=name))).status)

    watch = stub.Watch(HealthCheckRequest(service="readiness"))
    assert (await watch.read()).status == NOT_SERVING  # not every model is
    assert [await told(name) for name in ready] == [SERVING, NOT_SERVING]
    ready = {"de-en": True}
    assert (await watch.read()).status == SERVING
    assert [await told(name) for name in ("en-de", "de-en")] == [NOT_SERVING, SERVING]
    ready = {}
    assert (await watch.read()).status == NOT_SERVING, "there is no model"
    ready = {"de-en": True}
    assert (await watch.read()).status == SERVING
    health.set_serving(False)
    assert [await told(name) for name in ("en-de", "de-en")] == [NOT_SERVING, NOT_SERVING]
    watching.cancel()
    watch.cancel()


async def test_a_model_is_ready_while_it_is_watched_and_requests_are_welcome(health: Health) -> None:
    health.set_serving(True)
    watching = asyncio.create_task(health.watch(lambda: {"a": True, "b": False}, lambda: True))
    await asyncio.sleep(0)

    assert [health.is_ready(name) for name in ("a", "b", "c", "")] == [True, False, False, False]
    health.set_serving(False)
    assert not health.is_ready("a")
    watching.cancel()
