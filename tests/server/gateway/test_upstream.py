import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse

from server.access.access import Access
from server.gateway import upstream
from server.telemetry.metrics import Metrics
from tests.certificates import authority
from tests.server.echo_engine import EchoEngine
from tests.server.gateway.conftest import Behind, OpenGateway, until


async def test_health_follows_the_server(behind: Behind) -> None:
    assert behind.upstream.is_serving
    behind.health.set_serving(False)
    await until(lambda: not behind.upstream.is_serving)
    assert (await behind.call("GET", "/healthz")).status == 503
    behind.health.set_serving(True)
    await until(lambda: behind.upstream.is_serving)
    assert not behind.upstream.asks_for_key


async def test_a_server_that_is_not_there_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "_AGAIN_SECONDS", 0.0)
    gone = upstream.Upstream("localhost:1")
    calls = 0

    class Stub:
        def __init__(self, _: object) -> None:
            pass

        async def Watch(self, *_: object, **__: object) -> AsyncIterator[object]:  # gRPC's name
            nonlocal calls
            calls += 1
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "gone", ""
            )
            yield

    monkeypatch.setattr(upstream, "HealthStub", Stub)
    watching = asyncio.create_task(gone.watch())
    await until(lambda: calls > 2)
    watching.cancel()
    await gone.close()

    assert [record.getMessage() for record in caplog.records if record.name == upstream.__name__] == [
        "the server's health cannot be followed: UNAVAILABLE: gone"
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
        "the server's health cannot be followed: no answer within 0.05 s"
    ]


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
