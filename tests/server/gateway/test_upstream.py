import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from grpc_health.v1.health_pb2 import HealthCheckResponse

from server.access.access import Access
from server.gateway import upstream
from server.telemetry.metrics import Metrics
from server.web.serving import _KEEP_ALIVE_SECONDS
from tests.certificates import authority
from tests.server.echo_engine import EchoEngine
from tests.server.gateway.conftest import Behind, OpenGateway, until

_GATEWAY = Path(__file__).parents[3] / "deploy" / "kubernetes" / "components" / "gateway" / "gateway.yaml"


async def test_health_follows_the_server(behind: Behind) -> None:
    assert behind.upstream.is_serving
    behind.health.set_serving(False)
    await until(lambda: not behind.upstream.is_serving)
    assert (await behind.call("GET", "/healthz")).status == 503
    behind.health.set_serving(True)
    await until(lambda: behind.upstream.is_serving)
    assert not behind.upstream.asks_for_key


async def test_the_shipped_probe_asks_the_event_loop_and_needs_no_server(behind: Behind) -> None:
    yaml = pytest.importorskip("yaml")
    shipped = next(yaml.safe_load_all(_GATEWAY.read_text(encoding="utf-8")))["spec"]["template"]["spec"]
    probe = shipped["containers"][0]["livenessProbe"]
    behind.health.set_serving(False)
    await until(lambda: not behind.upstream.is_serving)

    assert probe["httpGet"]["port"] == "http"  # metrics are answered by another thread
    assert (await behind.call("GET", probe["httpGet"]["path"])).status == 200
    assert probe["periodSeconds"] * probe["failureThreshold"] > _KEEP_ALIVE_SECONDS  # idle connections may take all


@pytest.mark.parametrize(
    ("silent", "told"),
    [((), ["UNAVAILABLE: gone 1"]), ((1, 3), ["no answer in time", "UNAVAILABLE: gone 2"])],
)
async def test_why_a_server_cannot_be_followed_is_told_once_and_once_more_after_silence(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, silent: tuple[int, ...], told: list[str]
) -> None:
    monkeypatch.setattr(upstream, "_AGAIN_SECONDS", 0.05)
    gone = upstream.Upstream("localhost:1")
    calls = 0

    class Stub:
        def __init__(self, _: object) -> None:
            pass

        async def Watch(self, _: object, *, wait_for_ready: bool = False) -> AsyncIterator[object]:  # gRPC's name
            nonlocal calls
            calls += 1
            if calls in silent or wait_for_ready:
                await asyncio.Event().wait()
            metadata = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, metadata, metadata, f"gone {calls}", "")
            yield

    monkeypatch.setattr(upstream, "HealthStub", Stub)
    watching = asyncio.create_task(gone.watch())
    await until(lambda: calls > 5)
    watching.cancel()
    await gone.close()

    assert [record.getMessage() for record in caplog.records if record.name == upstream.__name__] == [
        f"the server's health cannot be followed: {why}" for why in told
    ]


async def test_the_word_of_a_watch_that_ended_holds_until_the_next_one_is_silent(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "_AGAIN_SECONDS", 0.05)
    followed = upstream.Upstream("localhost:1")
    seen: list[bool] = []  # at the begin of each watch

    class Stub:
        def __init__(self, _: object) -> None:
            pass

        async def Watch(self, *_: object, **__: object) -> AsyncIterator[HealthCheckResponse]:  # gRPC's name
            seen.append(followed.is_serving)
            if len(seen) > 3:
                await asyncio.Event().wait()
            yield HealthCheckResponse(status=HealthCheckResponse.SERVING)

    monkeypatch.setattr(upstream, "HealthStub", Stub)
    watching = asyncio.create_task(followed.watch())
    await until(lambda: len(seen) > 5)
    watching.cancel()
    await followed.close()

    assert seen == [False, True, True, True, False, False]
    assert [record.getMessage() for record in caplog.records if record.name == upstream.__name__] == [
        "the server's health cannot be followed: no answer in time"
    ]


class Replica:
    """Tells its health, and answers callers without a key as it should."""

    def __init__(self) -> None:
        self.num_watches = 0
        self.refusal: grpc.StatusCode | None = None
        self.is_silent = False
        self._status, self._changed = HealthCheckResponse.SERVING, asyncio.Event()

    def serve(self, is_serving: bool) -> None:
        self._status = HealthCheckResponse.SERVING if is_serving else HealthCheckResponse.NOT_SERVING
        self._changed.set()
        self._changed = asyncio.Event()

    async def watch(self, *_: object) -> AsyncIterator[bytes]:
        self.num_watches += 1
        while True:
            yield HealthCheckResponse(status=self._status).SerializeToString()
            await self._changed.wait()

    async def list_models(self, _: object, context: Any) -> bytes:
        if self.is_silent:
            await asyncio.Event().wait()
        if self.refusal is not None:
            await context.abort(self.refusal, "refused")
        return b""

    async def open(self) -> tuple[grpc.aio.Server, int]:
        """Returns its server, which runs, and the port."""
        server = grpc.aio.server()
        watch = grpc.unary_stream_rpc_method_handler(self.watch)
        list_models = grpc.unary_unary_rpc_method_handler(self.list_models)
        for name, methods in (
            ("grpc.health.v1.Health", {"Watch": watch}),
            (upstream.SERVICE, {"ListModels": list_models}),
        ):
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, methods),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port


OpenReplicas = Callable[[int], Awaitable[tuple[upstream.Upstream, list[Replica]]]]


@pytest_asyncio.fixture
async def open_replicas() -> AsyncIterator[OpenReplicas]:
    """Opens replicas that serve, and what watches them behind one name."""
    async with contextlib.AsyncExitStack() as stack:

        async def opening(num_replicas: int) -> tuple[upstream.Upstream, list[Replica]]:
            replicas, ports = [Replica() for _ in range(num_replicas)], []
            for replica in replicas:
                server, port = await replica.open()
                stack.push_async_callback(server.stop, None)
                ports.append(port)
            followed = upstream.Upstream("ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports))
            watching = asyncio.create_task(followed.watch())
            stack.push_async_callback(followed.close)
            stack.callback(watching.cancel)
            await until(lambda: followed.is_serving)
            return followed, replicas

        yield opening


async def test_the_gateway_serves_while_one_of_the_replicas_does(open_replicas: OpenReplicas) -> None:
    followed, replicas = await open_replicas(2)
    await until(lambda: sorted(each.num_watches for each in replicas) == [1, 2])  # one of the channel for each
    other, watched = sorted(replicas, key=lambda each: each.num_watches)

    watched.serve(False)
    await until(lambda: other.num_watches == 2 or not followed.is_serving)
    assert followed.is_serving
    other.serve(False)
    await until(lambda: not followed.is_serving)
    watched.serve(True)
    await until(lambda: followed.is_serving)


async def test_what_is_known_of_keys_stays_while_the_server_does_not_say(
    open_replicas: OpenReplicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed, (replica,) = await open_replicas(1)
    assert not followed.asks_for_key
    replica.refusal = grpc.StatusCode.UNAUTHENTICATED
    await followed._learn_of_keys()
    assert followed.asks_for_key
    replica.refusal = grpc.StatusCode.RESOURCE_EXHAUSTED
    await followed._learn_of_keys()
    assert followed.asks_for_key
    replica.refusal = None
    await followed._learn_of_keys()
    assert not followed.asks_for_key

    monkeypatch.setattr(upstream, "_AGAIN_SECONDS", 0.05)
    replica.is_silent = True
    await followed._learn_of_keys()


ASKED = {"contents": ["A dog runs."], "targetLanguageCode": "de"}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Of a server that wants certificates of its callers."""
    issued = authority().issue()
    contents = {"tls_cert": issued.chain, "tls_key": issued.key, "tls_client_ca": authority().pem}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / name for name in contents}


def shown(name: str) -> grpc.ChannelCredentials:
    """What a gateway shows that has a certificate of this name."""
    issued = authority().issue(common_name=name)
    return grpc.ssl_channel_credentials(authority().pem, issued.key, issued.chain)


async def test_the_server_may_want_tls(opening_gateway: OpenGateway, metrics: Metrics, files: dict[str, Path]) -> None:
    del files["tls_client_ca"]
    trusted = grpc.ssl_channel_credentials(authority().pem)
    async with opening_gateway(Access(metrics.access, **files), "localhost", trusted, **files) as behind:
        assert (await behind.call("POST", "/v1/translate", ASKED)).status == 200


async def test_a_new_certificate_is_shown_and_calls_under_way_go_on(
    opening_gateway: OpenGateway, metrics: Metrics, engine: EchoEngine, files: dict[str, Path], tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text('[tenants.old]\ncommon_names = ["old"]\n[tenants.new]\ncommon_names = ["new"]\n')
    access = Access(metrics.access, **files, keys=keys)
    async with opening_gateway(access, "localhost", shown("old"), **files) as behind:
        engine.is_holding = True
        under_way = asyncio.create_task(behind.call("POST", "/v1/translate", ASKED))
        await engine.submitted.wait()
        behind.upstream.renew(shown("new"))
        engine.is_holding = False
        answer = await behind.call("POST", "/v1/translate", ASKED)
        serves = behind.upstream.is_serving
        engine.release(0)

        assert (answer.status, (await under_way).status, serves) == (200, 200, True)
        # With each of them it asks first whether the server wants keys.
        await until(lambda: [num_served(metrics, name) for name in ("old", "new")] == [2, 2])
        behind.health.set_serving(False)
        await until(lambda: not behind.upstream.is_serving)


async def test_a_certificate_that_the_server_does_not_take_is_seen_in_health(
    opening_gateway: OpenGateway, metrics: Metrics, files: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    async with opening_gateway(Access(metrics.access, **files), "localhost", shown("old"), **files) as behind:
        behind.upstream.renew(grpc.ssl_channel_credentials(authority().pem))
        await until(lambda: not behind.upstream.is_serving)
        behind.upstream.renew(shown("new"))
        await until(lambda: behind.upstream.is_serving)

    (message,) = [record.getMessage() for record in caplog.records if record.name == upstream.__name__]
    assert message.startswith("the server's health cannot be followed: UNAVAILABLE: ")


def num_served(metrics: Metrics, tenant: str) -> float | None:
    labels = {"tenant": tenant, "outcome": "ok"}
    return metrics.registry.get_sample_value("babelserve_tenant_requests_total", labels)
