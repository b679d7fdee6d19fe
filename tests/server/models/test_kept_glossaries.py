"""Glossaries that callers keep."""

import asyncio
import gc
import itertools
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from server.errors import GlossaryNotFound, InvalidRequest, PreconditionFailed
from server.models import kept_glossaries
from server.models.glossaries import Glossaries
from server.models.kept_glossaries import MAX_GLOSSARIES, GivenDictionary, KeptGlossaries, KeptGlossary
from server.text.glossary import Glossary

Terms = Sequence[tuple[str, str]]
DOGS = [("dog", "Hund"), ("red dog", "Rothund")]


def given(terms: Terms = DOGS, source: str = "en", target: str = "de") -> GivenDictionary:
    return GivenDictionary(source, target, terms)


async def taken_and_counted(kept: KeptGlossaries, make: Callable[[], list[GivenDictionary]]) -> tuple[int, int]:
    """The bytes that a glossary takes, and those that are counted."""
    await kept.put("b", "first", make())
    gc.collect()
    tracemalloc.start()
    try:
        own = await kept.put("a", "t", make())
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return taken, own.num_bytes


@pytest.fixture
def kept() -> KeptGlossaries:
    return KeptGlossaries()


async def test_a_glossary_is_kept_changed_and_forgotten(kept: KeptGlossaries) -> None:
    first = await kept.put("a", "Dogs", [given(), given([("Hund", "dog")], "DE", "en-gb")])
    second = await kept.put("a", "Others", [])

    changed = await kept.put("a", "Cats", [given([("cat", "Katze")])], identity=first.identity, revision=1)

    assert [each.compiled.name for each in first.dictionaries] == [
        f"{first.identity}.en-de",
        f"{first.identity}.de-en-GB",
    ]
    assert list(first.dictionaries[0].terms.items()) == DOGS
    assert (changed.title, changed.revision, changed.create_time) == ("Cats", 2, first.create_time)
    assert kept.all_of("a") == [changed, second], "the oldest first"
    kept.delete("a", first.identity)
    assert kept.all_of("a") == [second]


async def test_a_request_names_a_dictionary(kept: KeptGlossaries) -> None:
    glossaries = Glossaries()
    own = await glossaries.kept.put("a", "Dogs", [given()])
    name = f"{own.identity}.en-de"

    resolved = glossaries.resolve(Glossary([], names=[name]), "a")

    assert [found.term.targets for found in resolved.find("A red dog sees a dog")] == [("Rothund",), ("Hund",)]
    assert resolved.named[0].version == own.dictionaries[0].compiled.version
    for tenant, wrong in (("b", name), ("a", own.identity), ("a", f"{own.identity}.de-en")):
        with pytest.raises(GlossaryNotFound, match=r"glossary.names\[0\]"):
            glossaries.resolve(Glossary([], names=[wrong]), tenant)


async def test_no_tenant_sees_those_of_others(kept: KeptGlossaries) -> None:
    own = await kept.put("a", "Dogs", [given()])

    assert kept.all_of("b") == []
    with pytest.raises(GlossaryNotFound):
        kept.get("b", own.identity)
    with pytest.raises(GlossaryNotFound):
        kept.delete("b", own.identity)
    with pytest.raises(GlossaryNotFound):
        await kept.put("b", "Mine", [], identity=own.identity)
    assert kept.get("a", own.identity) is own


@pytest.mark.parametrize(
    ("title", "dictionaries", "named"),
    [
        (" ", [], "glossary.title: must have 1 to 1024 characters, not all white space, not 1"),
        ("t" * 1025, [], "not 1025"),
        ("t", [given([])], r"glossary.dictionaries\[0\].terms: must be at least 1, not 0"),
        ("t", [given(), given()], r"dictionaries\[1\]: has the direction that glossary.dictionaries\[0\]"),
        ("t", [given(target="EN")], r"dictionaries\[0\].target_language_code: must be another language"),
        ("t", [given(source="x y")], r"source_language_code: must be a BCP-47 code"),
        ("t", [given(source="a" * 33)], "source_language_code"),
        ("t", [given([("a", "b"), ("", "b")])], r"terms\[1\].source: must have 1 to 200"),
        ("t", [given([("a", "b\nc")])], r"terms\[0\].target: must have no control characters"),
        ("t", [given([("a", "b"), ("a", "c")])], r"terms\[1\]: has the source that .*terms\[0\] has already"),
    ],
)
async def test_what_breaks_a_rule_is_refused(
    kept: KeptGlossaries, title: str, dictionaries: Sequence[GivenDictionary], named: str
) -> None:
    with pytest.raises(InvalidRequest, match=named):
        await kept.put("a", title, dictionaries)

    assert kept.all_of("a") == []


async def test_of_two_changes_at_once_one_is_refused(kept: KeptGlossaries) -> None:
    own = await kept.put("a", "Dogs", [given()])

    results = await asyncio.gather(
        *(kept.put("a", title, [given()], identity=own.identity, revision=1) for title in ("One", "Two")),
        return_exceptions=True,
    )

    assert sorted(type(each).__name__ for each in results) == ["KeptGlossary", "PreconditionFailed"]
    assert kept.get("a", own.identity).revision == 2


async def test_a_glossary_that_was_forgotten_meanwhile_is_not_kept_again(kept: KeptGlossaries) -> None:
    own = await kept.put("a", "Dogs", [given()])
    changing = asyncio.create_task(kept.put("a", "Cats", [given()], identity=own.identity))
    await asyncio.sleep(0)
    kept.delete("a", own.identity)

    with pytest.raises(GlossaryNotFound):
        await changing


async def test_room_is_limited_for_each_and_for_all(kept: KeptGlossaries, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (await kept.put("x", "Dogs", [given()])).num_bytes
    monkeypatch.setattr(kept_glossaries, "TENANT_BYTES", 2 * size)
    monkeypatch.setattr(kept_glossaries, "ALL_BYTES", 3 * size)

    own = [await kept.put("a", "Dogs", [given()]) for _ in range(2)]
    with pytest.raises(PreconditionFailed, match="a tenant's glossaries must take at most"):
        await kept.put("a", "Dogs", [given()])
    with pytest.raises(PreconditionFailed, match="the glossaries of all callers must take at most"):
        await kept.put("b", "Dogs", [given()])
    with pytest.raises(InvalidRequest, match=r"terms: must take at most"):
        await kept.put("b", "Dogs", [given([(f"dog{index}", "Hund") for index in range(100)])])
    await kept.put("a", "Again", [given()], identity=own[0].identity)
    kept.delete("a", own[1].identity)
    await kept.put("b", "Dogs", [given()])


async def test_the_room_for_one_is_known_without_a_look_at_others(
    kept: KeptGlossaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tenant in ("a", "b"):
        for _ in range(10):
            last = await kept.put(tenant, "Dogs", [given()])
    seen: list[str] = []

    def num_bytes(own: KeptGlossary) -> int:
        seen.append(own.identity)
        return 1

    monkeypatch.setattr(KeptGlossary, "num_bytes", property(num_bytes))

    await kept.put("b", "Cats", [given()], identity=last.identity)

    assert {*seen} == {last.identity}


async def test_a_tenant_may_have_so_many(kept: KeptGlossaries) -> None:
    for _ in range(MAX_GLOSSARIES):
        await kept.put("a", "Empty", [])

    with pytest.raises(PreconditionFailed, match="at most 1000 glossaries"):
        await kept.put("a", "Empty", [])
    await kept.put("b", "Empty", [])


@pytest.mark.parametrize(
    "make",
    [
        lambda index: (f"hard disk {index}", f"Festplatte {index}"),
        lambda index: (f"{index}" + " A" * 90, "b" * 200),
        lambda index: ("".join(chr(0x4E00 + (index * 7 + place * 13) % 5000) for place in range(200)), "\u4e00" * 200),
        lambda index: ("".join(chr(0x1F600 + (index * 7 + place * index) % 60) for place in range(200)), "x"),
    ],
    ids=["common", "long", "Chinese", "emoji"],
)
async def test_terms_take_about_as_much_memory_as_is_counted(kept: KeptGlossaries, make: Any) -> None:
    def dictionaries() -> list[GivenDictionary]:
        return [given(list({source: (source, target) for source, target in map(make, range(200))}.values()))]

    taken, counted = await taken_and_counted(kept, dictionaries)

    assert 0.3 * counted < taken < 1.5 * counted


async def test_dictionaries_take_about_as_much_memory_as_is_counted(kept: KeptGlossaries) -> None:
    pairs = list(itertools.permutations(("en", "de", "fr", "es", "it", "nl", "pt"), 2))

    taken, counted = await taken_and_counted(kept, lambda: [given([("a", "b")], *pair) for pair in pairs])

    assert 0.3 * counted < taken < 1.5 * counted
