"""A bulk call's texts with an engine that echoes: which are under way, which wait, and how a call ends."""

import asyncio
import contextlib
import dataclasses
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from server.access.tenants import Tenant
from server.access.token_bucket import TokenBucket
from server.errors import DeadlineExceeded, EngineFailed, InvalidRequest, NotServing, Overloaded, TranslationError
from server.models.model import Model
from server.telemetry.metrics import Metrics
from server.translation.bulk import Bulk, BulkAnswer, BulkText
from server.translation.job import Job
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine
from tests.server.models.catalogued import named
from tests.server.translation.parts import request

ROOM = 24  # sentences of a call, greedy: three times the rows that the echoing engine seems to have
NOW = 0.001  # seconds after which a refusal may be over


class Sender:
    """Sends texts in groups of so many, and knows how many texts were taken off it."""

    def __init__(self, *contents: str, group: int = 1) -> None:
        self.num_taken = 0
        self._texts = [BulkText(number, content, len(content)) for number, content in enumerate(contents)]
        self._group = group

    async def texts(self) -> AsyncIterator[list[BulkText]]:
        for start in range(0, len(self._texts), self._group):
            group = self._texts[start : start + self._group]
            self.num_taken += len(group)
            yield group


async def write(answer: BulkAnswer) -> tuple[int, str]:
    """A text's translation, or the error of one that failed alone."""
    outcome = answer.outcome
    return answer.identity, outcome.answers[answer.index].text(0) if isinstance(outcome, Job) else f"! {outcome}"


def bulk_of(translator: Translator, running: RunningCalls | None = None, **fields: Any) -> Bulk[tuple[int, str]]:
    options = dataclasses.replace(request("", beam_size=1), **fields)
    return Bulk(translator, running or RunningCalls(), options, write)


async def collect(bulk: Bulk[tuple[int, str]], texts: AsyncIterator[list[BulkText]], found: dict[int, str]) -> None:
    async for identity, text in bulk.answers(texts):
        found[identity] = text  # noqa: PERF403  # those before an error count


async def answers(bulk: Bulk[tuple[int, str]], *contents: str, group: int = 1) -> dict[int, str]:
    found: dict[int, str] = {}
    await collect(bulk, Sender(*contents, group=group).texts(), found)
    return found


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110  # the engine has no event for it
            await asyncio.sleep(0)


async def test_each_text_is_answered_with_its_number(translator: Translator) -> None:
    found = await answers(bulk_of(translator), "  One dog.\n", "", "***", "Two dogs. Three!")

    assert found == {0: "  One dog.\n", 1: "", 2: "***", 3: "Two dogs. Three!"}


async def test_a_group_is_one_request_and_each_of_its_texts_has_its_answer(
    translator: Translator, engine: EchoEngine
) -> None:
    contents = ["One dog.", "", "Two dogs. Three!", "  Four.\n", "***", "Five dogs run."]

    found = await answers(bulk_of(translator), *contents, group=3)

    assert found == dict(enumerate(contents))
    assert len(engine.flows) == 2
    assert translator.memory.used_bytes == 0


async def test_what_fails_in_a_group_fails_alone_as_if_it_had_come_alone(
    translator: Translator, engine: EchoEngine
) -> None:
    xliff = "application/xliff+xml"
    texts = ["<broken", "<xliff/>", "<also"]
    alone = await answers(bulk_of(translator, mime_type=xliff), "<xliff/>", *texts)
    grouped = await answers(bulk_of(translator, mime_type=xliff), "<xliff/>", *texts, group=4)
    assert grouped == alone
    assert [found.startswith("! contents[0]") for _, found in sorted(grouped.items())] == [False, True, False, True]

    errors = [DeadlineExceeded("late"), EngineFailed("translation failed"), Overloaded("no memory", "memory", NOW)]
    engine.fails = lambda _: errors.pop() if errors else None
    found = await answers(bulk_of(translator), "One dog.", "Two dogs.", "Three.", "Four.", group=4)
    assert sorted(found.values()) == ["! late", "! translation failed", "Four.", "One dog."]
    assert translator.memory.used_bytes == 0


async def test_a_group_of_which_every_text_fails_has_all_of_their_errors(translator: Translator) -> None:
    bulk = bulk_of(translator, mime_type="application/xliff+xml")

    found = await answers(bulk, "<xliff/>", "<broken", "<also", group=2)

    assert [each.startswith("! contents[0]") for _, each in sorted(found.items())] == [False, True, True]


async def test_wrong_options_end_the_call_at_its_first_group(translator: Translator) -> None:
    with pytest.raises(InvalidRequest, match="target_language_code"):
        await answers(bulk_of(translator, target_language_code="xx"), "One dog.", "Two dogs.", group=2)


async def test_answers_come_in_the_order_of_completion(translator: Translator, engine: EchoEngine) -> None:
    engine.is_holding = True
    answered = bulk_of(translator).answers(Sender("One dog.", "Two dogs.", "Three.").texts())
    first = asyncio.ensure_future(anext(answered))
    await until(lambda: len(engine.futures) == 3)
    order = []
    for index in (2, 0, 1):
        engine.release(index)
        order.append((await first)[0])
        first = asyncio.ensure_future(anext(answered, None))  # type: ignore[arg-type]

    assert order == [2, 0, 1]
    assert await first is None


async def test_only_as_much_is_read_as_keeps_the_engine_busy(translator: Translator, engine: EchoEngine) -> None:
    engine.is_holding = True
    sender = Sender(*["One dog."] * 1000)
    answered = bulk_of(translator).answers(sender.texts())
    first = asyncio.ensure_future(anext(answered))
    await until(lambda: len(engine.futures) == ROOM)

    engine.release(0)
    await first
    for _ in range(100):
        await asyncio.sleep(0)
    before = sender.num_taken
    second = asyncio.ensure_future(anext(answered))
    await until(lambda: sender.num_taken > before)

    assert (before, sender.num_taken) == (ROOM, ROOM + 1)  # an answer that nobody has taken keeps its room
    second.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await second


async def test_neither_unread_answers_nor_texts_that_are_tried_again_keep_a_model(
    translator: Translator, model: Model
) -> None:
    errors: list[TranslationError] = [EngineFailed("translation failed"), Overloaded("no memory", "memory", 60.0)]
    engine = EchoEngine(fails=lambda _: errors.pop() if errors else None)
    catalogue, name = translator.catalogue, model.manifest.name
    catalogue.put(named(model, name, "2", engine))
    del engine
    supervisor = weakref.ref(catalogue.loaded(name)[0][0].supervisor)
    sender = Sender("One dog.", "Two dogs.", "Three.", "Four.")
    answered = bulk_of(translator).answers(sender.texts())
    found = [await anext(answered)]
    await until(lambda: sender.num_taken == 4)

    catalogue.put(named(model, name, "3"))
    await until(lambda: supervisor() is None)

    found += [await anext(answered) for _ in range(2)]
    assert sorted(text for _, text in found) == ["! translation failed", "Four.", "Three."]
    await answered.aclose()
    assert translator.memory.used_bytes == 0


async def test_texts_that_fail_are_not_read_beyond_the_room_either(translator: Translator) -> None:
    sender = Sender("One dog.", *["<broken"] * 1000)
    answered = bulk_of(translator, mime_type="application/xliff+xml").answers(sender.texts())
    await anext(answered)
    for _ in range(10_000):
        await asyncio.sleep(0)

    assert sender.num_taken <= ROOM + 2
    await answered.aclose()
    assert translator.memory.used_bytes == 0


async def test_a_long_text_may_be_larger_than_the_room(translator: Translator) -> None:
    text = "One dog runs. " * 100

    assert await answers(bulk_of(translator), text, "Two.") == {0: text, 1: "Two."}


async def test_nothing_is_held_any_more_when_a_call_has_ended_or_its_caller_has_left(
    translator: Translator, engine: EchoEngine
) -> None:
    await answers(bulk_of(translator), "One dog.", "Two dogs.")
    assert translator.memory.used_bytes == 0

    engine.is_holding = True
    leaving = asyncio.ensure_future(answers(bulk_of(translator), *["One dog."] * 100))
    await until(lambda: len(engine.futures) == 2 + ROOM)
    assert translator.memory.used_bytes > 0
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving

    assert translator.memory.used_bytes == 0
    assert all(future.cancelled() for future in engine.futures[2:])


async def test_texts_wait_while_the_engine_is_full(translator: Translator, engine: EchoEngine) -> None:
    engine.refuses = Overloaded("queue is full", "sentences", NOW, lasts_seconds=60.0)
    waiting = asyncio.ensure_future(answers(bulk_of(translator), "One dog."))
    await asyncio.sleep(5 * NOW)
    assert not waiting.done()
    translator.check_open(Tenant(name="anonymous"), None)  # others are not refused for it

    engine.refuses = None

    assert await waiting == {0: "One dog."}


async def test_texts_wait_for_memory(translator: Translator) -> None:
    most = translator.memory.max_bytes
    give_back = translator.memory.keep(most)
    waiting = asyncio.ensure_future(answers(bulk_of(translator), "One dog."))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()

    give_back()

    assert await waiting == {0: "One dog."}


class CountingBucket(TokenBucket):
    """Counts how often it had not enough."""

    num_refused = 0

    def take(self, cost: float) -> float:
        wait = super().take(cost)
        self.num_refused += wait > 0
        return wait


async def test_texts_wait_until_the_quota_has_room(translator: Translator) -> None:
    bucket = CountingBucket(rate=50.0, burst=1.0)  # by the echoing engine, a text costs some seconds
    tenant = Tenant(name="billing", bucket=bucket)

    found = await answers(bulk_of(translator, tenant=tenant), "One dog.", "Two dogs.", "Three dogs.")

    assert len(found) == 3
    assert bucket.num_refused >= 2


async def test_a_text_that_found_no_room_while_it_ran_is_tried_again(
    translator: Translator, engine: EchoEngine
) -> None:
    errors: list[TranslationError] = [Overloaded("no memory", "memory", NOW), Overloaded("no memory", "memory", NOW)]
    engine.fails = lambda _: errors.pop() if errors else None

    assert await answers(bulk_of(translator), "One dog.", "Two dogs.") == {0: "One dog.", 1: "Two dogs."}
    assert translator.memory.used_bytes == 0


@pytest.mark.parametrize("error", [Overloaded("no memory", "memory", NOW), InvalidRequest("decoding.ratio", "is 3")])
async def test_a_text_that_is_tried_again_is_paid_once(
    translator: Translator, engine: EchoEngine, metrics: Metrics, error: TranslationError
) -> None:
    errors = [error] * 2
    engine.fails = lambda _: errors.pop() if errors else None
    spent = []
    for name in ("unlucky", "lucky"):
        bucket = TokenBucket(rate=1.0, burst=1000.0, clock=lambda: 0.0)
        await answers(bulk_of(translator, tenant=Tenant(name=name, bucket=bucket)), "One dog.", "Two dogs.", group=2)
        cost = metrics.registry.get_sample_value("babelserve_tenant_cost_seconds_total", {"tenant": name})
        spent.append((bucket._level, cost))

    assert not errors
    assert spent[0] == spent[1]


async def test_a_text_fails_alone(translator: Translator, engine: EchoEngine) -> None:
    errors = [EngineFailed("translation failed"), DeadlineExceeded("late")]
    engine.fails = lambda _: errors.pop() if errors else None

    found = await answers(bulk_of(translator), "One dog.", "Two dogs.", "A" * (2 << 20) + "B", "Three.")

    assert found[0] == "! late"
    assert found[1] == "! translation failed"
    assert found[2].startswith("! contents[0]: must be at most 2097152 bytes")
    assert found[3] == "Three."


async def test_wrong_options_end_the_call_at_its_first_text(translator: Translator) -> None:
    with pytest.raises(InvalidRequest, match="target_language_code"):
        await answers(bulk_of(translator, target_language_code="xx"), "One dog.", "Two dogs.")


async def test_what_the_sender_raises_ends_the_call_when_all_before_it_are_answered(translator: Translator) -> None:
    async def texts() -> AsyncIterator[list[BulkText]]:
        yield [BulkText(7, "One dog.", 8)]
        raise InvalidRequest("text", "must be set")

    found: dict[int, str] = {}
    with pytest.raises(InvalidRequest, match="must be set"):
        await collect(bulk_of(translator), texts(), found)

    assert found == {7: "One dog."}


async def test_a_server_that_shuts_down_answers_what_it_has_accepted(
    translator: Translator, engine: EchoEngine
) -> None:
    engine.is_holding = True
    running, found = RunningCalls(), dict[int, str]()
    texts = Sender(*["One dog."] * 100).texts()
    calling = asyncio.ensure_future(collect(bulk_of(translator, running), texts, found))
    await until(lambda: len(engine.futures) == ROOM)
    running.refuse()
    for index in range(ROOM):
        engine.release(index)

    with pytest.raises(NotServing, match="shutting down"):
        await calling
    assert sorted(found) == list(range(ROOM))


async def test_a_call_whose_options_come_when_the_server_shuts_down_takes_no_text(translator: Translator) -> None:
    running, sender = RunningCalls(), Sender("One dog.")
    running.refuse()

    with pytest.raises(NotServing, match="shutting down"):
        await collect(bulk_of(translator, running), sender.texts(), {})
    assert sender.num_taken == 0


async def test_a_lost_lane_ends_the_call_so_that_its_texts_are_sent_again(
    translator: Translator, engine: EchoEngine
) -> None:
    errors: list[TranslationError] = [NotServing("the server has lost what ran this sentence")]
    engine.fails = lambda _: errors.pop() if errors else None

    with pytest.raises(NotServing, match="has lost"):
        await answers(bulk_of(translator), *["One dog."] * 3)


async def test_a_bulk_call_is_of_the_flow_of_bulk_calls_and_has_its_callers_deadline(
    translator: Translator, engine: EchoEngine
) -> None:
    await answers(bulk_of(translator, deadline=float("inf")), "One dog.")

    assert [(flow.name, flow.is_bulk) for flow in engine.flows] == [("anonymous", True)]
    assert engine.deadlines == [float("inf")]


async def test_a_text_that_was_accepted_in_the_moment_in_which_the_call_breaks_holds_nothing(
    translator: Translator, engine: EchoEngine
) -> None:
    engine.is_holding = True

    async def breaking() -> AsyncIterator[list[BulkText]]:
        yield [BulkText(0, "One dog.", 8)]
        raise RuntimeError("broken")

    with pytest.raises(ExceptionGroup):
        await collect(bulk_of(translator), breaking(), {})

    assert [future.cancelled() for future in engine.futures] == [True]
    assert translator.memory.used_bytes == 0
