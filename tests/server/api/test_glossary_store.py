"""Glossaries of callers, in messages."""

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from babelserve.v1 import glossary_store_pb2 as pb
from server.access.tenants import Tenant
from server.api.glossary_store import GlossaryStore
from server.errors import GlossaryNotFound, InvalidRequest, PreconditionFailed
from server.models.kept_glossaries import KeptGlossaries
from server.telemetry.log import begin_request
from server.translation.calls import let_in
from server.translation.memory import MemoryBudget

DOGS = pb.Dictionary(
    source_language_code="en",
    target_language_code="de",
    terms=[pb.DictionaryTerm(source="dog", target="Hund"), pb.DictionaryTerm(source="cat", target="Katze")],
)


@pytest.fixture
def memory() -> MemoryBudget:
    return MemoryBudget(1 << 30)


@pytest.fixture
def store(memory: MemoryBudget) -> GlossaryStore:
    begin_request("my-id")
    let_in(Tenant(name="a"), "")
    return GlossaryStore(KeptGlossaries(), memory)


async def test_a_glossary_is_kept_and_told(store: GlossaryStore) -> None:
    kept = await store.put(pb.PutKeptGlossaryRequest(glossary=pb.KeptGlossary(title="Dogs", dictionaries=[DOGS])))

    (dictionary,) = kept.dictionaries
    assert (kept.title, kept.revision) == ("Dogs", 1)
    assert kept.create_time_ms > 1_700_000_000_000
    assert (dictionary.num_terms, len(dictionary.terms)) == (2, 0)
    assert dictionary.glossary_name == f"{kept.id}.en-de"
    assert list((await store.list(pb.ListKeptGlossariesRequest())).glossaries) == [kept]
    found = await store.get(pb.GetKeptGlossaryRequest(id=kept.id))
    assert found.dictionaries[0].terms == DOGS.terms
    assert await store.get(pb.GetKeptGlossaryRequest(id=kept.id, without_terms=True)) == kept


async def test_terms_are_read_and_written_on_other_threads(store: GlossaryStore, memory: MemoryBudget) -> None:
    threads: list[threading.Thread] = []

    def terms() -> Iterator[pb.DictionaryTerm]:
        threads.append(threading.current_thread())
        yield DOGS.terms[0]

    def note(glossary: pb.KeptGlossary) -> tuple[int, int]:
        threads.append(threading.current_thread())
        return len(glossary.dictionaries[0].terms), memory.used_bytes

    dictionary = SimpleNamespace(source_language_code="en", target_language_code="de", terms=terms())
    message: Any = SimpleNamespace(glossary=SimpleNamespace(id="", title="Dogs", revision=0, dictionaries=[dictionary]))
    kept = await store.put(message)

    num_terms, num_bytes = await store.read(pb.GetKeptGlossaryRequest(id=kept.id), note)

    assert len(threads) == 2
    assert threading.current_thread() not in threads
    assert (num_terms, num_bytes > 0, memory.used_bytes) == (1, True, 0)


async def test_terms_are_not_written_without_memory(store: GlossaryStore, memory: MemoryBudget) -> None:
    kept = await store.put(pb.PutKeptGlossaryRequest(glossary=pb.KeptGlossary(title="Dogs", dictionaries=[DOGS])))
    memory.max_bytes = 100

    with pytest.raises(InvalidRequest, match="memory"):
        await store.get(pb.GetKeptGlossaryRequest(id=kept.id))
    await store.get(pb.GetKeptGlossaryRequest(id=kept.id, without_terms=True))


async def test_a_glossary_has_so_many_dictionaries(store: GlossaryStore) -> None:
    glossary = pb.KeptGlossary(title="Dogs", dictionaries=[DOGS] * 1001)

    with pytest.raises(InvalidRequest, match="dictionaries: must be at most 1000, not 1001"):
        await store.put(pb.PutKeptGlossaryRequest(glossary=glossary))


async def test_a_glossary_is_changed_if_nobody_else_has_changed_it(store: GlossaryStore) -> None:
    kept = await store.put(pb.PutKeptGlossaryRequest(glossary=pb.KeptGlossary(title="Dogs", dictionaries=[DOGS])))
    kept.title = "Cats"
    del kept.dictionaries[:]

    changed = await store.put(pb.PutKeptGlossaryRequest(glossary=kept))

    assert (changed.title, changed.revision, len(changed.dictionaries)) == ("Cats", 2, 0)
    with pytest.raises(PreconditionFailed, match="revision: must be 2, not 1"):
        await store.put(pb.PutKeptGlossaryRequest(glossary=kept))


async def test_glossaries_are_those_of_the_callers_tenant(store: GlossaryStore) -> None:
    kept = await store.put(pb.PutKeptGlossaryRequest(glossary=pb.KeptGlossary(title="Dogs")))
    let_in(Tenant(name="b"), "")

    assert not (await store.list(pb.ListKeptGlossariesRequest())).glossaries
    with pytest.raises(GlossaryNotFound):
        await store.delete(pb.DeleteKeptGlossaryRequest(id=kept.id))
    let_in(Tenant(name="a"), "")
    await store.delete(pb.DeleteKeptGlossaryRequest(id=kept.id))
    with pytest.raises(GlossaryNotFound):
        await store.get(pb.GetKeptGlossaryRequest(id=kept.id))


@pytest.mark.parametrize("is_put", [True, False])
async def test_the_memory_of_a_caller_that_leaves_is_held_until_the_work_for_it_has_ended(
    store: GlossaryStore, memory: MemoryBudget, is_put: bool
) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def work(_: object = None) -> None:
        began.set()
        goes_on.wait(30)

    def terms() -> Iterator[pb.DictionaryTerm]:
        work()
        yield DOGS.terms[0]

    async def put() -> None:
        given = SimpleNamespace(source_language_code="en", target_language_code="de", terms=terms())
        message: Any = SimpleNamespace(glossary=SimpleNamespace(id="", title="Dogs", revision=0, dictionaries=[given]))
        with memory.hold(100):  # as the handler of gRPC does
            await store.put(message)

    kept = await store.put(pb.PutKeptGlossaryRequest(glossary=pb.KeptGlossary(title="Dogs", dictionaries=[DOGS])))
    asked = pb.GetKeptGlossaryRequest(id=kept.id)
    leaving = asyncio.create_task(put()) if is_put else asyncio.create_task(store.read(asked, work))
    assert await asyncio.to_thread(began.wait, 30)
    leaving.cancel()
    await asyncio.wait([leaving], timeout=0.05)

    assert memory.used_bytes > 0
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert memory.used_bytes == 0
    assert list((await store.list(pb.ListKeptGlossariesRequest())).glossaries) == [kept]
