"""Documents on their way to the end; the engine echoes, and the processes are real."""

import asyncio
import dataclasses
import logging
import os
from collections.abc import Callable, Sequence

import pytest
from google.rpc.code_pb2 import Code as StatusNumber

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Priority
from server.bundle.languages import LanguagePair
from server.documents import job as job_module
from server.documents.documents import Documents
from server.documents.job import DocumentFailed, Job, State
from server.errors import Code, NotServing, Overloaded, TranslationError
from server.fronts.backend import Caller
from server.fronts.in_process import InProcess
from server.models.model import Model
from server.telemetry.metrics import Metrics
from server.text.splitter import MAX_TEXT_BYTES
from server.translation.memory import MemoryBudget
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.babelserve.formats.files import word
from tests.server.documents.conftest import CALLER, OPTIONS, Translated
from tests.server.echo_engine import EchoEngine, catalogue_of
from tests.server.models.administered import until


def content_of(job: Job) -> bytes:
    with job.reading() as file:
        return os.pread(file.fileno(), job.num_bytes, 0)


def failure_of(job: Job) -> tuple[Code, str]:
    with pytest.raises(DocumentFailed) as caught:
        job.check_result()
    assert (job.state, job.num_bytes) == (State.ERROR, 0)
    return caught.value.code, str(caught.value)


async def test_all_texts_are_translated_in_the_background(
    translated: Translated, engine: EchoEngine, metrics: Metrics
) -> None:
    data = b"A dog runs. A man sits.\n\n42\nOne more.\n"
    job = await translated(data)

    assert (job.state, content_of(job)) == (State.DONE, data)
    assert (job.num_texts, job.num_done, job.num_failed) == (2, 2, 0)
    assert job.num_characters == len("A dog runs. A man sits.One more.")
    assert job.seconds_remaining == 0
    assert {flow.rank for flow in engine.flows} == {Priority.LOW}
    labels = {"method": "TranslateBulk", "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_requests_total", labels) == 1


async def test_a_file_without_texts_comes_back(translated: Translated) -> None:
    assert content_of(await translated(b"42")) == b"42"


async def test_a_text_that_fails_stays_as_it_was_and_is_counted(translated: Translated) -> None:
    data = b"x" * (MAX_TEXT_BYTES + 1) + b"\nA dog runs."
    job = await translated(data)

    assert (job.state, job.num_failed, content_of(job)) == (State.DONE, 1, data)


async def test_a_translation_that_does_not_fit_is_counted_as_failed(
    translated: Translated, backend: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose_a_tag(_: object, __: object, ___: object, take: Callable[[int, pb.Translation], None]) -> None:
        take(0, pb.Translation(text="Eins</b>"))
        take(1, pb.Translation(text="Zwei"))

    monkeypatch.setattr(backend, "translate_bulk", lose_a_tag)
    job = await translated(word("One", "Two"), "a.docx")

    assert (job.state, job.num_done, job.num_failed) == (State.DONE, 2, 1)


async def test_a_document_fails_if_all_its_texts_do(translated: Translated) -> None:
    code, words = failure_of(await translated(b"x" * (MAX_TEXT_BYTES + 1)))

    assert code is Code.INVALID_ARGUMENT
    assert words.startswith("contents[0]: must be at most")


async def test_a_document_that_cannot_be_read_fails_and_is_counted(translated: Translated, metrics: Metrics) -> None:
    code, words = failure_of(await translated(b"no archive", "a.docx"))

    assert code is Code.INVALID_ARGUMENT
    assert words.startswith("file: cannot be translated: it is no ZIP archive")
    labels = {"front": "http", "code": "INVALID_ARGUMENT"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 1


async def test_it_waits_while_the_server_has_too_much_to_do(
    documents: Documents, translated: Translated, engine: EchoEngine
) -> None:
    job = await documents.start("a.txt", b"A dog runs.", OPTIONS, CALLER)
    engine.refuses = Overloaded("full", "sentences", 0.01)
    await until(lambda: job.state is not State.QUEUED)
    await asyncio.sleep(0.1)
    assert job.state is State.TRANSLATING
    assert job.seconds_remaining >= 1
    engine.refuses = None
    await asyncio.wait_for(job.wait(), 30)

    assert content_of(job) == b"A dog runs."


@pytest.mark.parametrize("failure", [Overloaded("full", "elsewhere", 0.01), NotServing("gone")])
async def test_only_texts_without_an_answer_are_sent_again(
    translated: Translated, backend: InProcess, monkeypatch: pytest.MonkeyPatch, failure: TranslationError
) -> None:
    sent: list[list[str]] = []

    async def answer_two(
        _: object, texts: Sequence[str], __: object, take: Callable[[int, pb.Translation], None]
    ) -> None:
        sent.append(list(texts))
        take(0, pb.Translation(text=texts[0].upper()))
        take(1, pb.Translation(status=pb.Status(code=StatusNumber.INVALID_ARGUMENT)))
        if len(sent) < 3:
            raise failure

    monkeypatch.setattr(job_module, "_PAUSES", (0.01,))  # which begin anew with each answer
    monkeypatch.setattr(backend, "translate_bulk", answer_two)
    job = await translated(b"a a\nb b\nc c\nd d\ne e\nf f\n")

    assert sent == [["a a", "b b", "c c", "d d", "e e", "f f"], ["c c", "d d", "e e", "f f"], ["e e", "f f"]]
    assert (job.num_done, job.num_failed, content_of(job)) == (6, 3, b"A A\nb b\nC C\nd d\nE E\nf f\n")


async def test_its_language_is_detected_when_the_server_has_less_to_do(
    translated: Translated, backend: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures, detect = [Overloaded("a debt", "quota", 0.01)], backend.detect_languages

    async def refuse_once(message: pb.DetectLanguagesRequest, caller: Caller) -> pb.DetectLanguagesResponse:
        if failures:
            raise failures.pop()
        return await detect(message, caller)

    monkeypatch.setattr(backend, "detect_languages", refuse_once)
    job = await translated(b"A dog runs.", options=pb.TranslateRequest(target_language_code="de"))

    assert (failures, job.state, content_of(job)) == ([], State.DONE, b"A dog runs.")


@pytest.mark.parametrize("num_refused", [2, 3])
async def test_it_waits_for_a_server_that_is_gone_but_not_for_ever(
    translated: Translated, backend: InProcess, monkeypatch: pytest.MonkeyPatch, num_refused: int
) -> None:
    failures: list[TranslationError] = [NotServing("gone") for _ in range(num_refused)]

    async def detect(*_: object) -> pb.DetectLanguagesResponse:
        if failures:
            raise failures.pop()
        return pb.DetectLanguagesResponse(detections=[pb.Detection(language_code="en", confidence=0.9)])

    monkeypatch.setattr(job_module, "_PAUSES", (0.01, 0.01))
    monkeypatch.setattr(backend, "detect_languages", detect)
    job = await translated(b"A dog runs.", options=pb.TranslateRequest(target_language_code="de"))

    if num_refused == 3:
        assert failure_of(job) == (Code.UNAVAILABLE, "gone")
    else:
        assert content_of(job) == b"A dog runs."


async def test_it_fails_when_the_server_shuts_down(documents: Documents, running: RunningCalls) -> None:
    job = await documents.start("a.txt", b"A dog runs.", OPTIONS, CALLER)
    running.refuse()
    await asyncio.wait_for(job.wait(), 30)

    assert failure_of(job) == (Code.UNAVAILABLE, "the server is shutting down")


async def test_an_error_of_our_own_is_logged_and_not_told(
    translated: Translated, backend: InProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("a secret")

    monkeypatch.setattr(backend, "translate_bulk", fail)
    with caplog.at_level(logging.ERROR):
        job = await translated(b"A dog runs.")

    assert failure_of(job) == (Code.INTERNAL, "internal error")
    assert "a document failed by an error of the server's own" in caplog.text


@pytest.mark.parametrize(("confidence", "is_refused"), [(0.99, True), (0.5, False)])
async def test_a_document_in_the_target_language_is_refused_if_that_is_sure(
    translated: Translated,
    backend: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    confidence: float,
    is_refused: bool,
) -> None:
    asked: list[pb.DetectLanguagesRequest] = []

    async def detect(message: pb.DetectLanguagesRequest, _: object) -> pb.DetectLanguagesResponse:
        asked.append(message)
        return pb.DetectLanguagesResponse(detections=[pb.Detection(language_code="de", confidence=confidence)])

    monkeypatch.setattr(backend, "detect_languages", detect)
    job = await translated(b"Ein Hund.\n" * 1000, options=pb.TranslateRequest(target_language_code="de"))

    assert job.state is (State.ERROR if is_refused else State.DONE)
    assert 4000 <= len(asked[0].contents[0]) < 5000
    if is_refused:
        assert "Source and target language are equal" in failure_of(job)[1]


async def test_a_begin_without_letters_says_nothing_of_the_language(
    translated: Translated, backend: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def detect(*_: object) -> pb.DetectLanguagesResponse:
        return pb.DetectLanguagesResponse(detections=[pb.Detection(language_code="en", confidence=0.0)])

    async def translate(options: pb.TranslateRequest, *_: object) -> None:
        asked.append(options.source_language_code)

    monkeypatch.setattr(backend, "detect_languages", detect)
    monkeypatch.setattr(backend, "translate_bulk", translate)
    await translated(b"Ein Hund.", options=pb.TranslateRequest(target_language_code="de"))

    assert asked == [""]


async def test_it_goes_through_where_there_is_no_memory_to_detect_its_language(
    translated: Translated, translator: Translator, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("py3langid", reason="it comes with the extra `detect`")
    pairs = (LanguagePair(source="en", target="de"), LanguagePair(source="fr", target="es"))
    manifest = dataclasses.replace(model.manifest, language_pairs=pairs)
    monkeypatch.setattr(translator, "catalogue", catalogue_of(dataclasses.replace(model, manifest=manifest)))
    monkeypatch.setattr(MemoryBudget, "shrink", lambda *_: False)

    job = await translated(b"A dog runs.", options=pb.TranslateRequest(target_language_code="de"))

    assert (job.state, content_of(job)) == (State.DONE, b"A dog runs.")


def test_a_failure_keeps_the_code_and_the_words() -> None:
    failed = DocumentFailed(Overloaded("full", "memory"))

    assert isinstance(failed, TranslationError)
    assert (failed.code, str(failed), failed.is_recorded) == (Code.RESOURCE_EXHAUSTED, "full", True)
