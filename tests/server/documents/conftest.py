"""A backend in front of an engine that echoes, and documents that it translates."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from babelserve.v1 import translation_pb2 as pb
from server.access.access import Access
from server.api.handlers import Api
from server.documents.documents import Documents, Limits
from server.documents.job import Job
from server.fronts.backend import Caller
from server.fronts.in_process import InProcess
from server.telemetry.metrics import Metrics
from server.translation.calls import Calls
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

CALLER = Caller(front="http", request_id="my-id", address="1.2.3.4")
OPTIONS = pb.TranslateRequest(source_language_code="en", target_language_code="de")


@pytest.fixture
def running() -> RunningCalls:
    return RunningCalls()


@pytest.fixture
def backend(translator: Translator, metrics: Metrics, running: RunningCalls) -> InProcess:
    calls = Calls(metrics, running, 60.0)
    return InProcess(Api(translator), calls, Access(metrics.access), translator.memory, lambda: True)


@pytest_asyncio.fixture
async def keeping(backend: InProcess) -> AsyncIterator[Callable[[Limits], Documents]]:
    """Makes documents with limits, and closes them at the end."""
    made: list[Documents] = []

    def keeping(limits: Limits) -> Documents:
        made.append(Documents(backend, limits))
        return made[-1]

    yield keeping
    for each in made:
        await each.close()


@pytest.fixture
def documents(keeping: Callable[[Limits], Documents]) -> Documents:
    return keeping(Limits())


Translated = Callable[..., Awaitable[Job]]


@pytest.fixture
def translated(documents: Documents) -> Translated:
    """Translates a file, and returns its job at the end."""

    async def translated(data: bytes, name: str = "a.txt", options: Any = OPTIONS, caller: Caller = CALLER) -> Job:
        job = await documents.start(name, data, options, caller)
        await asyncio.wait_for(job.wait(), 30)
        return job

    return translated
