"""A gateway answers as its server does; the engine echoes."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from babelserve.v1 import glossary_store_pb2 as store_pb
from babelserve.v1 import translation_pb2 as pb
from server.access.access import Access
from server.access.keys import hash_key
from server.errors import DeadlineExceeded, GlossaryNotFound, NotServing, Overloaded, Unauthenticated
from server.fronts.backend import Caller
from server.fronts.front import BodyTooLong
from server.telemetry.metrics import Metrics
from tests.server.echo_engine import EchoEngine
from tests.server.gateway.conftest import MAX_BYTES, Behind, OpenGateway, until

ASKED = {"contents": ["A dog runs."], "targetLanguageCode": "de"}
REQUEST = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")
CALLER = Caller(front="http", request_id="my-id")


async def test_each_method_is_answered_by_the_server(behind: Behind) -> None:
    translated = await behind.call("POST", "/v1/translate", ASKED, x_request_id="my-id")
    score = {"pairs": [{"source": "A dog.", "target": "A dog."}], "targetLanguageCode": "de"}

    assert (translated.status, translated.json["translations"][0]["text"]) == (200, "A dog runs.")
    assert translated.headers["x-request-id"] == "my-id"
    assert (await behind.call("GET", "/v1/models")).json["models"][0]["name"] == "echo"
    assert (await behind.call("GET", "/v1/glossaries")).json == {}
    assert (await behind.call("POST", "/v1/detect", {"contents": ["A"]})).json["detections"][0]["languageCode"] == "en"
    assert len((await behind.call("POST", "/v1/score", score)).json["scores"]) == 1
    labels = {"front": "http", "code": "OK"}
    assert behind.metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 5


async def test_a_stream_comes_sentence_by_sentence(behind: Behind) -> None:
    answer = await behind.call("POST", "/v1/translate/stream", ASKED | {"contents": ["A dog runs. A man sits."]})

    events = answer.body.decode().strip().split("\n\n")
    texts = {json.loads(event.partition("data: ")[2])["sentence"]["text"] for event in events[:-1]}
    assert texts == {"A dog runs.", "A man sits."}
    assert events[-1].startswith("event: end")


async def test_errors_of_the_server_come_through_with_their_times(behind: Behind, engine: EchoEngine) -> None:
    wrong = await behind.call("POST", "/v1/translate", ASKED | {"targetLanguageCode": "zz"})
    model = await behind.call("POST", "/v1/translate", ASKED | {"model": "no"})
    vendors = await behind.call("POST", "/translate", {"q": "A", "source": "en", "target": "zz"})
    engine.refuses = Overloaded("12 sentences wait, of at most 10", "sentences", 7.0)
    busy = await behind.call("POST", "/v1/translate", ASKED)

    assert (wrong.status, wrong.json["error"]["message"].partition(":")[0]) == (400, "target_language_code")
    assert model.status == 404
    assert vendors.json == {"error": "zz is not supported"}
    assert (busy.status, busy.json["error"]["message"]) == (429, "12 sentences wait, of at most 10")
    assert int(busy.headers["retry-after"]) >= 7
    value = behind.metrics.registry.get_sample_value
    assert value("babelserve_queue_rejected_total", {"reason": "elsewhere"}) == 1


async def test_keys_are_the_servers(opening_gateway: OpenGateway, metrics: Metrics, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[tenants.billing]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n')
    async with opening_gateway(Access(metrics.access, keys=keys)) as behind:
        without = await behind.call("POST", "/v1/translate", ASKED)
        right = await behind.call("POST", "/v1/translate", ASKED, authorization="Bearer key")
        settings = await behind.call("GET", "/frontend/settings", authorization="Bearer key")
        with pytest.raises(Unauthenticated):
            await behind.remote.translate(REQUEST, Caller(front="http", request_id="my-id", key="ä"))

    assert (without.status, right.status) == (401, 200)
    assert settings.json["keyRequired"] is True
    labels = {"tenant": "billing", "outcome": "ok"}
    assert metrics.registry.get_sample_value("babelserve_tenant_requests_total", labels) == 2


async def test_glossaries_of_callers_are_the_servers(behind: Behind) -> None:
    terms = [store_pb.DictionaryTerm(source="dog", target="Köter")]
    asked = store_pb.PutKeptGlossaryRequest(
        glossary=store_pb.KeptGlossary(
            title="mine",
            dictionaries=[store_pb.Dictionary(source_language_code="en", target_language_code="de", terms=terms)],
        )
    )
    kept = await behind.remote.put_glossary(asked, CALLER)
    named = store_pb.GetKeptGlossaryRequest(id=kept.id)
    found = await behind.remote.get_glossary(named, CALLER)
    read = await behind.remote.read_glossary(named, CALLER, lambda own: list(own.dictionaries[0].terms))
    listed = await behind.remote.list_kept_glossaries(CALLER)
    await behind.remote.delete_glossary(store_pb.DeleteKeptGlossaryRequest(id=kept.id), CALLER)

    assert [each.id for each in listed.glossaries] == [kept.id]
    assert (found.title, read) == ("mine", terms)
    with pytest.raises(GlossaryNotFound):
        await behind.remote.get_glossary(store_pb.GetKeptGlossaryRequest(id=kept.id), CALLER)


async def test_texts_of_a_document_are_a_bulk_call(behind: Behind) -> None:
    found: dict[int, str] = {}
    options = pb.TranslateRequest(target_language_code="de")
    texts = ["A dog runs.", "A man sits."] * 20
    await behind.remote.translate_bulk(options, texts, CALLER, lambda index, each: found.update({index: each.text}))

    assert [found[index] for index in range(40)] == texts
    keyed = Caller(front="http", request_id="my-id", address="10.0.0.1", key="key")
    assert await behind.remote.identify(CALLER) == ""
    assert (await behind.remote.identify(keyed)).startswith("key ")


async def test_the_work_ends_with_the_caller_and_with_its_time(behind: Behind, engine: EchoEngine) -> None:
    engine.is_holding = True
    task = asyncio.create_task(behind.remote.translate(REQUEST, CALLER))
    await engine.submitted.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await until(lambda: all(future.done() for future in engine.futures))

    with pytest.raises(DeadlineExceeded):
        await behind.remote.translate(REQUEST, Caller(front="http", request_id="my-id", seconds=0.1))
    assert task.cancelled()


async def test_without_a_server_callers_are_told_to_come_back(behind: Behind) -> None:
    await behind.servers.stop()

    with pytest.raises(NotServing) as caught:
        await behind.remote.translate(REQUEST, CALLER)
    assert "127.0.0.1" not in str(caught.value)
    await until(lambda: not behind.remote.is_serving)
    assert (await behind.call("GET", "/healthz")).status == 503


async def test_what_is_too_long_for_the_server_is_told_with_its_length(behind: Behind) -> None:
    asked = pb.TranslateRequest(contents=["A" * (2 << 20)] * 3, target_language_code="de")
    with pytest.raises(BodyTooLong) as caught:
        await behind.remote.translate(asked, CALLER)

    assert str(caught.value) == f"body: must mean a message of at most 4194304 bytes, not {asked.ByteSize()}"


async def test_memory_is_bounded(behind: Behind) -> None:
    release = behind.remote.keep(MAX_BYTES // 2)
    answer = await behind.call("POST", "/v1/translate", ASKED)
    release()

    assert answer.status == 429
    assert (await behind.call("POST", "/v1/translate", ASKED)).status == 200


async def test_an_error_of_the_front_itself_is_counted(behind: Behind) -> None:
    await behind.call("POST", "/v1/translate", b"{")

    labels = {"front": "http", "code": "INVALID_ARGUMENT"}
    assert behind.metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 1
