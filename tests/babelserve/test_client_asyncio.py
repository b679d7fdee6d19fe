"""The asyncio client does what the other one does, and cancels with its task."""

import asyncio

import grpc
import pytest

from babelserve import AsyncClient
from babelserve.errors import ModelNotFound
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


async def test_the_asyncio_client_does_the_same(server: ScriptedServer, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.UNAVAILABLE, "draining", ()))

    async with AsyncClient(server.address) as client:
        results = await asyncio.gather(*[client.translate([text], target="de") for text in "abc"])
        items = [item async for item in client.translate_stream(["a", "b"], target="de")]
        scored = await client.score([("a", "xyz"), ("b", "")], target="de")
        models = await client.list_models()
        pivots = await client.list_pivots()

    assert [result.translations[0].text for result in results] == ["A", "B", "C"]
    assert [item.content_index for item in items] == [1, 0]
    assert [score.score for score in scored.scores] == [-3.0, 0.0]
    assert (models[0].name, pivots) == ("scripted", ())


async def test_the_asyncio_client_raises_the_same_errors(server: ScriptedServer, service: ScriptedService) -> None:
    service.failures.extend([(grpc.StatusCode.NOT_FOUND, "no such model", ())] * 2)

    async with AsyncClient(server.address) as client:
        with pytest.raises(ModelNotFound, match="no such model"):
            await client.translate(["a"], target="de")
        with pytest.raises(ModelNotFound):
            _ = [item async for item in client.translate_stream(["a"], target="de")]


async def test_cancelling_the_task_cancels_the_call(server: ScriptedServer, service: ScriptedService) -> None:
    service.before_answer = lambda request: service.is_closing.wait()

    async with AsyncClient(server.address) as client:
        task = asyncio.create_task(client.translate(["a"], target="de"))
        await asyncio.to_thread(service.has_request.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await asyncio.to_thread(service.cancelled.wait, 20)
