"""Bulk translation, by both clients: what is sent, what comes back, and what is sent again."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import grpc
import pytest

from babelserve import AsyncClient, BulkTranslation, Client
from babelserve.errors import DeadlineExceeded, InvalidRequest, ModelNotFound, ServerFailed, Unavailable
from babelserve.v1 import translation_pb2
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService

MANY = [f"text {number}" for number in range(500)]
Translate = Callable[..., list[BulkTranslation]]


@pytest.fixture(params=["sync", "async"])
def translate(request: pytest.FixtureRequest, client: Client, server: ScriptedServer) -> Translate:
    """Translates texts by one of the clients, and collects what comes back until an error."""

    async def collect(contents: Iterable[str], options: dict[str, float]) -> list[BulkTranslation]:
        async with AsyncClient(server.address) as asyncio_client:
            return [each async for each in asyncio_client.translate_bulk(contents, target="de", **options)]  # type: ignore[arg-type]

    def translate(contents: Iterable[str], **options: float) -> list[BulkTranslation]:
        if request.param == "sync":
            return list(client.translate_bulk(contents, target="de", **options))  # type: ignore[arg-type]
        return asyncio.run(collect(contents, options))

    return translate


async def _while_others_run(
    server: ScriptedServer, contents: Iterator[str], *, is_async: bool, deadline_seconds: float | None = None
) -> list[BulkTranslation]:
    """Translates texts by one of the clients; the loop does not wait while the iterator does."""

    async def texts() -> AsyncIterator[str]:
        while (text := await asyncio.to_thread(next, contents, None)) is not None:
            yield text

    if is_async:
        async with AsyncClient(server.address) as asyncio_client:
            found = asyncio_client.translate_bulk(texts(), target="de", deadline_seconds=deadline_seconds)
            return [each async for each in found]
    with Client(server.address) as client:
        return await asyncio.to_thread(
            lambda: list(client.translate_bulk(contents, target="de", deadline_seconds=deadline_seconds))
        )


def test_each_text_comes_back_with_its_index(translate: Translate, service: ScriptedService) -> None:
    found = translate(iter(MANY), beam_size=2)

    assert {each.index: each.translation.text for each in found} == {n: text.upper() for n, text in enumerate(MANY)}
    assert (found[0].model, found[0].model_version) == ("scripted", "1")
    assert service.requests[0].decoding.beam_size == 2
    assert service.requests[0].priority == translation_pb2.PRIORITY_UNSPECIFIED  # which is low, in a bulk call


def test_a_text_fails_alone(translate: Translate) -> None:
    good, bad = sorted(translate(["good", "!INVALID_ARGUMENT too odd"]), key=lambda each: each.index)

    assert good.translation.text == "GOOD"
    assert bad.translation.error is not None
    assert bad.translation.error.code == grpc.StatusCode.INVALID_ARGUMENT


def test_what_a_lost_call_has_left_is_sent_again_and_nothing_twice(
    translate: Translate, service: ScriptedService
) -> None:
    service.most_bulk_texts = 100

    found = translate(iter(MANY))

    assert service.num_attempts == 2
    assert sorted(each.index for each in found) == list(range(len(MANY)))
    assert all(each.translation.text == MANY[each.index].upper() for each in found)


def test_a_server_that_is_away_for_a_while_goes_on(
    translate: Translate, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("babelserve.losses._PAUSE_SECONDS", 0.05)
    away = [(grpc.StatusCode.UNAVAILABLE, "starting", ())] * 9  # the attempts of more than two calls
    service.most_bulk_texts = 100
    service.before_answer = lambda request: service.failures.extend(away if service.num_attempts == 1 else ())

    found = translate(iter(MANY))

    assert sorted(each.index for each in found) == list(range(len(MANY)))
    assert service.num_attempts == 11


@pytest.mark.parametrize("is_async", [False, True])
async def test_no_call_without_texts_is_made_while_the_given_iterator_waits(
    server: ScriptedServer, service: ScriptedService, is_async: bool
) -> None:
    is_called_again, was_called_again = threading.Event(), list[bool]()

    def contents() -> Iterator[str]:
        yield "a"
        was_called_again.append(is_called_again.wait(0.5))
        yield "b"

    service.most_bulk_answers = 1
    service.before_answer = lambda request: is_called_again.set() if service.num_attempts > 1 else None

    found = await _while_others_run(server, contents(), is_async=is_async)

    assert [each.translation.text for each in found] == ["A", "B"]
    assert (was_called_again, service.num_attempts) == ([False], 2)


def test_a_call_that_is_lost_after_its_last_answer_is_not_made_again(
    translate: Translate, service: ScriptedService
) -> None:
    has_answered = threading.Event()

    def contents() -> Iterator[str]:
        yield "a"
        has_answered.wait(0.5)

    service.most_bulk_answers = 1

    assert [each.translation.text for each in translate(contents())] == ["A"]
    assert service.num_attempts == 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_deadline_passes_while_the_given_iterator_waits(
    server: ScriptedServer, service: ScriptedService, is_async: bool
) -> None:
    is_over = threading.Event()

    def contents() -> Iterator[str]:
        yield "a"
        is_over.wait(10)

    service.most_bulk_answers = 1

    with pytest.raises(DeadlineExceeded):
        await _while_others_run(server, contents(), is_async=is_async, deadline_seconds=0.5)

    is_over.set()


def test_a_server_that_answers_nothing_ends_it(translate: Translate, service: ScriptedService) -> None:
    service.failures.extend([(grpc.StatusCode.UNAVAILABLE, "draining", ())] * 4)

    with pytest.raises(Unavailable, match="draining"):
        translate(["a"])


def test_other_failures_end_it(translate: Translate, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.NOT_FOUND, "no such model", ()))

    with pytest.raises(ModelNotFound, match="no such model"):
        translate(["a"])


def test_a_deadline_is_for_all_texts(translate: Translate, service: ScriptedService) -> None:
    service.before_answer = lambda request: service.is_closing.wait()

    with pytest.raises(DeadlineExceeded):
        translate(["a"], deadline_seconds=0.2)


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (7, TypeError, r"contents\[1\] must be a string, not int"),
        ("\ud800", InvalidRequest, r"contents\[1\] is not valid Unicode"),
        ("x" * (5 << 20), InvalidRequest, r"contents\[1\]: has 52428\d\d bytes; the limit is 4194304"),
    ],
)
def test_what_cannot_be_sent_is_raised(translate: Translate, bad: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        translate(["good", bad, "never sent"])


def test_what_the_given_iterator_raises_comes_after_the_answers(client: Client) -> None:
    def contents() -> Iterator[str]:
        yield "a"
        raise OSError("disk")

    found = client.translate_bulk(contents(), target="de")

    assert next(found).translation.text == "A"
    with pytest.raises(OSError, match="disk"):
        next(found)


def test_a_lost_call_is_made_again_while_the_given_iterator_waits(client: Client, service: ScriptedService) -> None:
    is_answered, has_waited = threading.Event(), list[bool]()

    def contents() -> Iterator[str]:
        yield from ("a", "b")
        has_waited.append(is_answered.wait(10))
        yield "c"

    service.most_bulk_texts = 1
    found = client.translate_bulk(contents(), target="de")

    assert [next(found).translation.text, next(found).translation.text] == ["A", "B"]
    is_answered.set()
    assert [each.translation.text for each in found] == ["C"]
    assert (has_waited, service.num_attempts) == ([True], 2)


def test_a_lost_call_is_made_again_after_the_given_iterator_has_failed(
    client: Client, service: ScriptedService
) -> None:
    has_failed, found = threading.Event(), list[int]()

    def contents() -> Iterator[str]:
        yield from MANY[:5]
        has_failed.set()
        raise OSError("disk")

    service.most_bulk_texts = 2
    service.before_answer = lambda request: has_failed.wait(10)

    with pytest.raises(OSError, match="disk"):
        found.extend(each.index for each in client.translate_bulk(contents(), target="de"))
    assert (found, service.num_attempts) == ([0, 1, 2, 3, 4], 2)


@pytest.mark.parametrize("is_async", [False, True])
async def test_no_text_is_asked_for_behind_one_that_cannot_be_sent_though_the_call_is_lost(
    server: ScriptedServer, service: ScriptedService, is_async: bool
) -> None:
    has_failed, asked = threading.Event(), list[bool]()

    def contents() -> Iterator[str]:
        yield from ("a", "b")
        has_failed.set()
        yield "\ud800"
        asked.append(True)

    service.most_bulk_answers = 2
    service.bulk_ids = lambda identity: [identity] if identity == 0 or has_failed.wait(10) else []

    with pytest.raises(InvalidRequest, match=r"contents\[2\] is not valid Unicode"):
        await _while_others_run(server, contents(), is_async=is_async)
    assert (asked, service.num_attempts) == ([], 1)


@pytest.mark.parametrize("shift", [0, 1])
def test_an_answer_that_nobody_waits_for_is_a_failure_of_the_server(
    translate: Translate, service: ScriptedService, shift: int
) -> None:
    service.bulk_ids = lambda number: [number + 7 * shift] * 2

    with pytest.raises(ServerFailed, match=rf"^the server has answered text {7 * shift}, which it was not sent, or"):
        translate(["a"])


def test_leaving_early_cancels_the_call(client: Client, service: ScriptedService) -> None:
    found = client.translate_bulk(iter(MANY), target="de")
    next(found)

    found.close()  # type: ignore[attr-defined]

    assert service.cancelled.wait(20)


async def test_texts_may_come_from_an_async_generator_that_outlives_a_lost_call(
    server: ScriptedServer, service: ScriptedService
) -> None:
    async def contents() -> AsyncIterator[str]:
        for text in MANY:
            await asyncio.sleep(0)
            yield text

    service.most_bulk_texts = 100
    async with AsyncClient(server.address) as client:
        found = [each.index async for each in client.translate_bulk(contents(), target="de")]

    assert sorted(found) == list(range(len(MANY)))


async def test_a_cancellation_inside_the_given_iterator_is_no_end_of_it(server: ScriptedServer) -> None:
    async def contents() -> AsyncIterator[str]:
        yield "a"
        raise asyncio.CancelledError

    async with AsyncClient(server.address) as client:
        found = client.translate_bulk(contents(), target="de")
        assert (await anext(found)).translation.text == "A"
        with pytest.raises(asyncio.CancelledError):
            await anext(found)


async def test_leaving_early_asks_for_no_further_text(server: ScriptedServer, service: ScriptedService) -> None:
    is_closed = asyncio.Event()

    async def contents() -> AsyncIterator[str]:
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            is_closed.set()

    async with AsyncClient(server.address) as client:
        async with contextlib.aclosing(client.translate_bulk(contents(), target="de")) as found:  # type: ignore[type-var]
            assert (await anext(found)).translation.text == "A"
        async with asyncio.timeout(20):
            await is_closed.wait()
    assert await asyncio.to_thread(service.cancelled.wait, 20)
