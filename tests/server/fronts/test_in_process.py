"""The backend in the server's own process; the engine echoes."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from babelserve.v1 import glossary_store_pb2 as store_pb
from babelserve.v1 import translation_pb2 as pb
from server.access.access import Access
from server.access.keys import hash_key
from server.api.handlers import Api
from server.errors import InvalidRequest, Overloaded, Unauthenticated
from server.fronts.backend import Backend, Caller
from server.fronts.in_process import InProcess
from server.telemetry.metrics import Metrics
from server.text.splitter import MAX_TEXT_BYTES
from server.translation.calls import Calls
from server.translation.pushback import Pushback
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.fakes import FakeClock
from tests.server.echo_engine import EchoEngine

CALLER = Caller(front="libretranslate", request_id="my-id", address="1.2.3.4")
REQUEST = pb.TranslateRequest(contents=["A dog runs. A man sits."], target_language_code="de")
PUT = store_pb.PutKeptGlossaryRequest(glossary=store_pb.KeptGlossary(title="Dogs"))
TRACE = "0af7651916cd43dd8448eb211c80319c"


def make(translator: Translator, metrics: Metrics, access: Access | None = None) -> InProcess:
    calls = Calls(metrics, RunningCalls(), 60.0)
    access = access or Access(metrics.access)
    return InProcess(Api(translator), calls, access, translator.memory, lambda: not translator.memory.used_bytes)


@pytest.fixture
def backend(translator: Translator, metrics: Metrics) -> InProcess:
    return make(translator, metrics)


async def test_each_method_answers_and_is_counted_by_its_front(
    backend: Backend, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[pb.TranslateStreamResponse] = []

    async def send(response: pb.TranslateStreamResponse) -> None:
        sent.append(response)

    pair = pb.ScorePair(source="A dog.", target="A dog.")
    with caplog.at_level(logging.INFO):
        translated = await backend.translate(REQUEST, CALLER)
        await backend.translate_stream(pb.TranslateStreamRequest(request=REQUEST), CALLER, send)
        scored = await backend.score(pb.ScoreRequest(pairs=[pair], target_language_code="de"), CALLER)
        models = await backend.list_models(CALLER)
        glossaries = await backend.list_glossaries(CALLER)
        detected = await backend.detect_languages(pb.DetectLanguagesRequest(contents=["A dog."]), CALLER)
        kept = await backend.put_glossary(PUT, CALLER)
        listed = await backend.list_kept_glossaries(CALLER)
        found = await backend.get_glossary(store_pb.GetKeptGlossaryRequest(id=kept.id), CALLER)
        title = await backend.read_glossary(store_pb.GetKeptGlossaryRequest(id=kept.id), CALLER, lambda own: own.title)
        await backend.delete_glossary(store_pb.DeleteKeptGlossaryRequest(id=kept.id), CALLER)
        await asyncio.sleep(0)

    assert (list(listed.glossaries), found, title) == ([kept], kept, kept.title)
    assert translated.translations[0].text == REQUEST.contents[0]
    assert {each.sentence.text for each in sent} == {"A dog runs.", "A man sits."}
    assert detected.detections[0].language_code == "en"
    assert (len(scored.scores), len(models.models), len(glossaries.glossaries)) == (1, 1, 0)
    facts = [vars(record)["facts"] for record in caplog.records if record.message == "request"]
    methods = ["Translate", "TranslateStream", "Score", "ListModels", "ListGlossaries", "DetectLanguages"]
    methods += ["PutKeptGlossary", "ListKeptGlossaries", "GetKeptGlossary", "GetKeptGlossary", "DeleteKeptGlossary"]
    assert [each["method"] for each in facts] == methods
    assert {(each["front"], each["code"], each["tenant"]) for each in facts} == {("libretranslate", "OK", "anonymous")}
    labels = {"front": "libretranslate", "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 11


async def test_glossaries_are_not_read_while_requests_of_the_caller_are_refused(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Api, __: float | None) -> None:
        raise Overloaded("the quota is used up", "quota")

    monkeypatch.setattr(Api, "check_open", refuse)
    named = store_pb.GetKeptGlossaryRequest(id="a")

    for call in (
        backend.put_glossary(PUT, CALLER),
        backend.get_glossary(named, CALLER),
        backend.read_glossary(named, CALLER, lambda own: own),
    ):
        with pytest.raises(Overloaded):
            await call


async def test_callers_without_a_key_are_refused_and_tenants_known(
    translator: Translator, metrics: Metrics, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[tenants.billing]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n')
    backend = make(translator, metrics, Access(metrics.access, keys=keys))

    with pytest.raises(Unauthenticated):
        await backend.list_models(CALLER)
    await backend.list_models(Caller(front="http", request_id="my-id", key="key"))

    labels = {"tenant": "billing", "outcome": "ok"}
    assert metrics.registry.get_sample_value("babelserve_tenant_requests_total", labels) == 1


async def test_a_deadline_is_that_of_the_request(backend: Backend, engine: EchoEngine) -> None:
    await backend.translate(REQUEST, Caller(front="http", request_id="my-id", seconds=5.0))
    await backend.translate(REQUEST, CALLER)

    soon, late = engine.deadlines[0], engine.deadlines[-1]
    assert soon is not None
    assert late is not None
    assert late - soon > 50  # the server's own is 60 s


async def test_an_overload_tells_each_caller_a_time_of_its_own(backend: InProcess, engine: EchoEngine) -> None:
    backend._calls.pushback = Pushback(FakeClock())
    times = []
    for _ in range(3):
        engine.refuses = Overloaded("full", "sentences", retry_after_seconds=0.0)
        with pytest.raises(Overloaded) as caught:
            await backend.translate(REQUEST, CALLER)
        times.append(caught.value.retry_after_seconds)

    assert times == sorted(times)
    assert len(set(times)) == 3


async def test_a_request_takes_memory_while_it_runs_and_an_answer_until_it_is_sent(
    backend: InProcess, translator: Translator
) -> None:
    translator.memory.max_bytes = 100
    with pytest.raises((Overloaded, InvalidRequest), match="memory"):
        await backend.translate(REQUEST, CALLER)
    assert translator.memory.used_bytes == 0

    give_back = backend.keep(10)
    assert translator.memory.used_bytes == 20
    give_back()
    assert translator.memory.used_bytes == 0


async def test_what_a_front_refuses_itself_is_recorded(
    backend: Backend, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await backend.record(InvalidRequest("q", "must be a string, not 7"), CALLER)
        await asyncio.sleep(0)

    (record,) = caplog.records
    facts = vars(record)["facts"]
    assert (facts["method"], facts["code"], facts["field"], facts["rule"]) == (
        "other",
        "INVALID_ARGUMENT",
        "q",
        "must be a string",
    )
    labels = {"front": "libretranslate", "code": "INVALID_ARGUMENT"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 1


async def test_a_refusal_by_a_front_is_counted_once(backend: Backend, metrics: Metrics) -> None:
    for error in (Overloaded("bodies hold 64 MiB", "memory"), InvalidRequest("q", "must be a string")):
        await backend.record(error, CALLER)

    assert metrics.registry.get_sample_value("babelserve_queue_rejected_total", {"reason": "memory"}) == 1


def test_it_serves_while_the_server_says_so(backend: InProcess) -> None:
    assert backend.is_serving
    give_back = backend.keep(1)
    assert not backend.is_serving
    give_back()


async def test_texts_of_a_bulk_call_come_one_by_one_and_each_may_fail(
    backend: Backend, metrics: Metrics, engine: EchoEngine
) -> None:
    taken: dict[int, pb.Translation] = {}
    texts = ["A dog runs.", "x" * (MAX_TEXT_BYTES + 1), "A man sits."]

    await backend.translate_bulk(pb.TranslateRequest(target_language_code="de"), texts, CALLER, taken.__setitem__)

    assert [taken[index].text for index in range(3)] == ["A dog runs.", "", "A man sits."]
    assert taken[1].status.message.startswith("contents[1]: must be at most")
    labels = {"method": "TranslateBulk", "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_requests_total", labels) == 1
    with pytest.raises(InvalidRequest, match="target_language_code"):
        await backend.translate_bulk(pb.TranslateRequest(target_language_code="zz"), texts, CALLER, taken.__setitem__)


async def test_callers_are_told_apart_by_tenant_or_address(
    translator: Translator, metrics: Metrics, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[tenants.billing]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n')
    known = make(translator, metrics, Access(metrics.access, keys=keys))

    assert await make(translator, metrics).identify(CALLER) == "1.2.3.4"
    assert await known.identify(replace(CALLER, key="key")) == "billing"
    with pytest.raises(Unauthenticated):
        await known.identify(CALLER)
