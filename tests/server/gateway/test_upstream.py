import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from server.access.access import Access
from server.gateway import upstream
from server.telemetry.metrics import Metrics
from tests.certificates import authority
from tests.server.gateway.conftest import Behind, OpenGateway, until


async def test_health_follows_the_server(behind: Behind) -> None:
    assert behind.upstream.is_serving
    await behind.health.set_serving(False)
    await until(lambda: not behind.upstream.is_serving)
    assert (await behind.call("GET", "/healthz")).status == 503
    await behind.health.set_serving(True)
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
    await gone.channel.close(None)

    assert [record.getMessage() for record in caplog.records if record.name == upstream.__name__] == [
        "the server's health cannot be followed: UNAVAILABLE: gone"
    ]


async def test_the_server_may_want_tls(opening_gateway: OpenGateway, metrics: Metrics, tmp_path: Path) -> None:
    issued = authority().issue()
    paths = {"tls_cert": tmp_path / "cert", "tls_key": tmp_path / "key"}
    paths["tls_cert"].write_bytes(issued.chain)
    paths["tls_key"].write_bytes(issued.key)
    trusted = grpc.ssl_channel_credentials(authority().pem)
    async with opening_gateway(Access(metrics.access, **paths), "localhost", trusted, **paths) as behind:
        asked = {"contents": ["A dog runs."], "targetLanguageCode": "de"}

        assert (await behind.call("POST", "/v1/translate", asked)).status == 200
