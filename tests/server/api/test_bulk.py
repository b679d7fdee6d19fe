"""Many texts with the same options; the engine echoes. The rest is tested over gRPC (tests/server/rpc/test_bulk.py)."""

from collections.abc import AsyncIterator

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Priority
from server.api.bulk import translate_bulk
from server.errors import InvalidRequest
from server.translation.bulk import BulkText
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine


async def texts(*contents: str) -> AsyncIterator[BulkText]:
    for index, content in enumerate(contents):
        yield BulkText(index, content, len(content))


async def answered(translator: Translator, options: pb.TranslateRequest) -> dict[int, str]:
    answers = translate_bulk(translator, RunningCalls(), options, texts("A dog.", "A man."), None)
    return {each.id: each.translation.text async for each in answers}


@pytest.mark.parametrize(
    ("asked", "priority"), [(pb.PRIORITY_UNSPECIFIED, Priority.LOW), (pb.PRIORITY_NORMAL, Priority.NORMAL)]
)
async def test_texts_are_background_work_unless_the_options_say_else(
    translator: Translator, engine: EchoEngine, asked: pb.Priority, priority: Priority
) -> None:
    found = await answered(translator, pb.TranslateRequest(target_language_code="de", priority=asked))

    assert found == {0: "A dog.", 1: "A man."}
    assert {each.rank for each in engine.flows} == {priority}


async def test_options_have_no_texts(translator: Translator) -> None:
    with pytest.raises(InvalidRequest, match=r"options.contents: must be empty: .*, not 1 texts"):
        await answered(translator, pb.TranslateRequest(target_language_code="de", contents=["A dog."]))
