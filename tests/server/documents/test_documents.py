"""What is kept of whom, and for how long; the engine echoes, and the processes are real."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.documents.documents import MAX_FILE_BYTES, DocumentNotFound, Documents, Limits
from server.documents.formats import UnknownFormat
from server.documents.job import DocumentFailed, Job, State
from server.errors import Code, InvalidRequest, Overloaded
from server.fronts.backend import Caller
from server.fronts.in_process import InProcess
from tests.children import children
from tests.server.documents.conftest import CALLER, OPTIONS, Translated
from tests.server.echo_engine import EchoEngine
from tests.server.models.administered import until

OTHER = replace(CALLER, address="5.6.7.8")


async def started(documents: Documents, data: bytes = b"A dog runs.") -> Job:
    return await documents.start("a.txt", data, OPTIONS, CALLER)


async def ended(documents: Documents, data: bytes = b"A dog runs.") -> Job:
    job = await started(documents, data)
    await end_of(job)
    return job


async def end_of(job: Job) -> None:
    await asyncio.wait_for(job.wait(), 30)
    await asyncio.sleep(0)  # its place among the results follows its end


async def test_a_document_is_its_owners_and_nobody_can_guess_it(documents: Documents, translated: Translated) -> None:
    job = await translated(b"A dog runs.", "b/My report.TXT")

    assert await documents.find(job.identity.upper(), CALLER) is job
    assert documents.find_open(job.identity) is job
    assert (job.name, len(job.identity), len(job.key)) == ("My report.txt", 32, 64)
    with pytest.raises(DocumentNotFound, match="kept for 30 minutes after their end, and not over a restart"):
        await documents.find(job.identity, OTHER)
    with pytest.raises(DocumentNotFound):
        documents.find_open("0" * 32)


@pytest.mark.parametrize(
    ("name", "data", "options", "error", "words"),
    [
        ("a.pdf", b"x", OPTIONS, UnknownFormat, "file: must have a name that ends in"),
        ("a.txt", b"", OPTIONS, InvalidRequest, f"file: must have 1 to {MAX_FILE_BYTES} bytes, not 0"),
        ("a.txt", b"x" * (MAX_FILE_BYTES + 1), OPTIONS, InvalidRequest, f"not {MAX_FILE_BYTES + 1}"),
        ("a.txt", b"x", pb.TranslateRequest(target_language_code="zz"), InvalidRequest, "target_language_code"),
        ("a.txt", b"x", pb.TranslateRequest(), InvalidRequest, "target_language_code"),
    ],
)
async def test_what_is_wrong_is_refused_at_once(
    documents: Documents, name: str, data: bytes, options: pb.TranslateRequest, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await documents.start(name, data, options, CALLER)


async def test_it_is_refused_while_any_request_is(documents: Documents, engine: EchoEngine) -> None:
    engine.refuses = Overloaded("full", "sentences", 7.0)

    with pytest.raises(Overloaded) as caught:
        await documents.start("a.txt", b"A dog.", pb.TranslateRequest(target_language_code="de"), CALLER)
    assert caught.value.retry_after_seconds >= 1


async def test_a_caller_that_leaves_while_its_file_is_stored_leaves_nothing(documents: Documents) -> None:
    kept = documents._jobs  # nobody is told of a job before its file is stored
    starting = asyncio.create_task(started(documents, b"A dog. " * 1_000_000))
    while not kept:  # noqa: ASYNC110 # it must be caught before the next thing happens
        await asyncio.sleep(0)
    (job,) = kept.values()

    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting

    assert job.source.closed
    assert not kept


async def test_no_more_processes_run_than_a_containers_quota_has_cores(
    backend: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.documents.documents.usable_cores", lambda: 1)
    documents, before, most = Documents(backend), children(), 0

    ending = asyncio.gather(*(ended(documents) for _ in range(3)))
    while not ending.done():
        most = max(most, len(children() - before))
        await asyncio.sleep(0.002)
    await documents.close()

    assert most == 1


async def test_a_forgotten_document_leaves_no_process(documents: Documents) -> None:
    before = children()
    job = await started(documents)
    await until(lambda: bool(children() - before))
    begun = children() - before
    documents.forget(job)
    await until(lambda: not children() & begun)

    await until(lambda: job.source.closed)
    with pytest.raises(DocumentNotFound):
        await documents.find(job.identity, CALLER)


@pytest.mark.parametrize("has_begun", [False, True])
async def test_callers_that_wait_for_a_forgotten_document_get_a_failure(
    documents: Documents, engine: EchoEngine, has_begun: bool
) -> None:
    engine.is_holding = True
    job = await started(documents)
    if has_begun:
        await engine.submitted.wait()
    documents.forget(job)

    await end_of(job)
    with pytest.raises(DocumentFailed, match="the document was given up") as caught:
        job.check_result()
    assert (job.state, caught.value.code) == (State.ERROR, Code.UNAVAILABLE)


async def test_a_result_that_was_forgotten_is_not_read(documents: Documents) -> None:
    job = await ended(documents)
    documents.forget(job)

    with pytest.raises(DocumentFailed, match="the document was given up"):
        job.check_result()


async def test_results_are_kept_for_a_time(keeping: Callable[[Limits], Documents]) -> None:
    documents = keeping(Limits(seconds=0.05))
    job = await ended(documents)
    assert job.state is State.DONE

    await until(lambda: job.result is not None and job.result.closed)
    with pytest.raises(DocumentNotFound):
        documents.find_open(job.identity)


@pytest.mark.parametrize("limits", [Limits(of_owner=2), Limits(in_all=2), Limits(num_bytes=30)])
async def test_too_many_are_refused_but_results_of_the_caller_give_way(
    keeping: Callable[[Limits], Documents], engine: EchoEngine, limits: Limits
) -> None:
    documents = keeping(limits)
    first = await ended(documents)
    engine.is_holding = True
    second, third = await started(documents), await started(documents)

    with pytest.raises(DocumentNotFound):
        documents.find_open(first.identity)
    assert documents.find_open(second.identity) is second
    with pytest.raises(Overloaded, match="documents"):
        await started(documents)
    documents.forget(third)
    await until(lambda: not third.num_bytes)
    await started(documents)


async def test_files_whose_options_are_being_checked_count_as_documents_of_their_owner(
    keeping: Callable[[Limits], Documents], backend: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, loaded, probe = keeping(Limits(of_owner=2)), asyncio.Event(), backend.translate

    async def translate(message: pb.TranslateRequest, caller: Caller) -> pb.TranslateResponse:
        await loaded.wait()
        return await probe(message, caller)

    monkeypatch.setattr(backend, "translate", translate)
    waiting = [asyncio.create_task(started(documents)) for _ in range(2)]
    leaving = asyncio.create_task(documents.start("a.txt", b"A dog.", OPTIONS, OTHER))
    await until(lambda: len(documents._arriving) == 3)
    with pytest.raises(Overloaded, match="2 documents of this caller are under way"):
        await asyncio.wait_for(started(documents), 5)

    leaving.cancel()
    loaded.set()
    await asyncio.gather(*waiting)
    assert not documents._arriving


async def test_results_of_the_owner_that_has_most_give_way_to_documents_of_others(
    keeping: Callable[[Limits], Documents], engine: EchoEngine
) -> None:
    documents = keeping(Limits(in_all=2))
    first, second = await ended(documents), await ended(documents)
    engine.is_holding = True
    new = await documents.start("a.txt", b"A dog.", OPTIONS, OTHER)

    with pytest.raises(DocumentNotFound):
        documents.find_open(first.identity)
    assert [documents.find_open(each.identity) for each in (second, new)] == [second, new]
    with pytest.raises(Overloaded, match="the server keeps 2 documents"):  # the other owner has no more than this one
        await documents.start("a.txt", b"A dog.", OPTIONS, OTHER)
    assert documents.find_open(second.identity) is second


async def test_an_upload_that_is_refused_costs_no_result(
    keeping: Callable[[Limits], Documents], engine: EchoEngine
) -> None:
    documents = keeping(Limits(num_bytes=60))
    first, second = await ended(documents), await ended(documents)
    engine.is_holding = True
    await documents.start("a.txt", b"A dog runs. " * 3, OPTIONS, OTHER)

    with pytest.raises(Overloaded, match="documents hold"):
        await started(documents, b"A man sits. " * 3)
    assert [documents.find_open(each.identity) for each in (first, second)] == [first, second]


async def test_results_of_the_owner_that_holds_most_give_way_to_bytes(
    keeping: Callable[[Limits], Documents], engine: EchoEngine
) -> None:
    documents = keeping(Limits(num_bytes=60))
    others = await documents.start("a.txt", b"A dog. ", OPTIONS, OTHER)
    await end_of(others)
    first, second = await ended(documents, b"A dog runs. " * 2), await ended(documents, b"A dog runs. " * 2)
    engine.is_holding = True
    new = await documents.start("a.txt", b"A dog runs. ", OPTIONS, OTHER)

    with pytest.raises(DocumentNotFound):
        documents.find_open(first.identity)
    assert [documents.find_open(each.identity) for each in (others, second, new)] == [others, second, new]
    with pytest.raises(Overloaded, match="documents hold"):  # the other owner holds less
        await started(documents, b"A man sits. " * 4)
    assert documents.find_open(second.identity) is second


async def test_a_result_that_is_read_counts_until_its_reader_ends_even_if_it_is_forgotten(
    keeping: Callable[[Limits], Documents],
) -> None:
    documents = keeping(Limits(num_bytes=30))
    first = await ended(documents)
    with first.reading() as file, first.reading():
        second = await ended(documents)
        documents.forget(first)
        documents.forget(first)  # as its time ends
        await ended(documents)  # the one that nobody reads gives way
        with pytest.raises(DocumentNotFound):
            documents.find_open(second.identity)
        with pytest.raises(Overloaded, match="documents hold"):
            await started(documents, b"A dog runs. " * 2)
        assert os.pread(file.fileno(), 99, 0) == b"A dog runs."

    assert file.closed
    await started(documents, b"A dog runs. " * 2)


async def test_downloads_of_one_owner_leave_room_to_others(keeping: Callable[[Limits], Documents]) -> None:
    documents = keeping(Limits(num_bytes=60, owner_bytes=30))
    first, second, third = [await ended(documents) for _ in range(3)]
    with pytest.raises(DocumentNotFound):
        documents.find_open(first.identity)

    with second.reading(), third.reading():
        with pytest.raises(Overloaded, match="documents of this caller hold"):
            await started(documents)
        others = await documents.start("a.txt", b"A dog runs. " * 2, OPTIONS, OTHER)

    assert [documents.find_open(each.identity) for each in (second, third, others)] == [second, third, others]


async def test_a_document_that_failed_holds_no_bytes(keeping: Callable[[Limits], Documents]) -> None:
    documents = keeping(Limits(num_bytes=30))
    failed = await documents.start("a.docx", b"no archive, but long", OPTIONS, CALLER)
    await end_of(failed)
    await documents.start("a.txt", b"A dog runs. " * 2, OPTIONS, OTHER)

    assert documents.find_open(failed.identity) is failed


async def test_the_result_that_ended_first_gives_way_first(
    keeping: Callable[[Limits], Documents], engine: EchoEngine
) -> None:
    documents = keeping(Limits(of_owner=2))
    engine.is_holding = True
    first = await started(documents)
    await engine.submitted.wait()
    engine.is_holding = False
    second = await ended(documents)
    engine.release(0)
    await end_of(first)

    await started(documents)

    assert documents.find_open(first.identity) is first
    with pytest.raises(DocumentNotFound):
        documents.find_open(second.identity)


async def test_none_is_left_when_the_server_stops(documents: Documents) -> None:
    before, done = children(), await ended(documents)
    job = await started(documents)
    await until(lambda: bool(children() - before))

    await documents.close()

    assert children() == before
    assert (job.source.closed, done.result is not None and done.result.closed) == (True, True)
    with pytest.raises(DocumentNotFound):
        documents.find_open(done.identity)
