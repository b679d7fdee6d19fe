"""Glossaries of callers, in messages."""

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

DOGS = pb.Dictionary(
    source_language_code="en",
    target_language_code="de",
    terms=[pb.DictionaryTerm(source="dog", target="Hund"), pb.DictionaryTerm(source="cat", target="Katze")],
)


@pytest.fixture
def store() -> GlossaryStore:
    begin_request("my-id")
    let_in(Tenant(name="a"), "")
    return GlossaryStore(KeptGlossaries())


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


async def test_terms_are_read_on_another_thread(store: GlossaryStore) -> None:
    threads: list[threading.Thread] = []

    def terms() -> Iterator[pb.DictionaryTerm]:
        threads.append(threading.current_thread())
        yield DOGS.terms[0]

    dictionary = SimpleNamespace(source_language_code="en", target_language_code="de", terms=terms())
    message: Any = SimpleNamespace(glossary=SimpleNamespace(id="", title="Dogs", revision=0, dictionaries=[dictionary]))

    await store.put(message)

    assert len(threads) == 1
    assert threading.current_thread() not in threads


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
