"""DeepL's glossaries over a real socket; the engine echoes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from babelserve.v1 import glossary_store_pb2 as store_pb
from server.access.access import Access
from server.access.keys import hash_key
from server.api import glossary_store
from server.models import kept_glossaries
from server.models.kept_glossaries import KeptGlossary
from server.telemetry.metrics import Metrics
from tests.server.web.conftest import OpenSite, Site

V2 = {"name": "Dogs", "source_lang": "EN", "target_lang": "DE", "entries": "dog\tHund", "entries_format": "tsv"}
DICTIONARY = {name: value for name, value in V2.items() if name != "name"}
V3 = {"name": "Dogs", "dictionaries": [DICTIONARY]}
NOBODYS = "96ab91fd-e715-41a1-adeb-5d701f84a483"


async def entries_of(site: Site, identity: str) -> str:
    answer = await site.call("GET", f"/v3/glossaries/{identity}/entries?source_lang=en&target_lang=de")
    text: str = answer.json["dictionaries"][0]["entries"]
    return text


async def test_a_glossary_of_version_2_is_kept_told_and_forgotten(site: Site) -> None:
    created = await site.call("POST", "/v2/glossaries", V2)
    path = f"/v2/glossaries/{created.json['glossary_id']}"

    assert created.status == 201
    assert (created.json["name"], created.json["entry_count"], created.json["ready"]) == ("Dogs", 1, True)
    assert (await site.call("GET", path)).json == created.json
    assert (await site.call("GET", "/v2/glossaries")).json == {"glossaries": [created.json]}
    entries = await site.call("GET", f"{path}/entries", accept="text/tab-separated-values")
    assert (entries.body, entries.headers["content-type"]) == (
        b"dog\tHund",
        "text/tab-separated-values; charset=utf-8",
    )
    assert (await site.call("DELETE", path)).status == 204
    assert (await site.call("GET", path)).status == 404


async def test_a_glossary_of_version_3_changes_by_dictionaries(site: Site) -> None:
    created = await site.call("POST", "/v3/glossaries", V3)
    identity = created.json["glossary_id"]
    path = f"/v3/glossaries/{identity}"

    named = await site.call("PATCH", path, {"name": "Cats"})
    more = await site.call("PATCH", path, {"dictionaries": [DICTIONARY | {"entries": "dog\tKöter\ncat\tKatze"}]})
    assert (created.status, named.json["name"], more.json["name"]) == (201, "Cats", "Cats")
    assert more.json["dictionaries"] == [{"source_lang": "en", "target_lang": "de", "entry_count": 2}]
    assert await entries_of(site, identity) == "dog\tKöter\ncat\tKatze"

    put = await site.call("PUT", f"{path}/dictionaries", DICTIONARY | {"entries": "bird\tVogel"})
    assert put.json == {"source_lang": "en", "target_lang": "de", "entry_count": 1}
    assert (await site.call("GET", path)).json["creation_time"] == created.json["creation_time"]
    assert await entries_of(site, identity) == "bird\tVogel"

    direction = f"{path}/dictionaries?source_lang=en&target_lang=de"
    assert (await site.call("DELETE", direction)).status == 204
    assert (await site.call("DELETE", direction)).status == 404
    assert (await site.call("GET", path)).json["dictionaries"] == []
    assert (await site.call("GET", "/v2/glossaries")).json == {"glossaries": []}
    assert (await site.call("GET", f"/v2/glossaries/{identity}")).status == 404


async def test_terms_are_written_only_where_they_are_needed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    with_terms = glossary_store._with_terms

    def noted(kept: KeptGlossary) -> store_pb.KeptGlossary:
        written.append(kept.title)
        return with_terms(kept)

    monkeypatch.setattr(glossary_store, "_with_terms", noted)
    identity = (await site.call("POST", "/v2/glossaries", V2)).json["glossary_id"]

    for path in ("/v2/glossaries", "/v3/glossaries"):
        await site.call("GET", path)
        await site.call("GET", f"{path}/{identity}")
    assert written == []

    await site.call("GET", f"/v2/glossaries/{identity}/entries")
    await site.call("PATCH", f"/v3/glossaries/{identity}", {"name": "Cats"})
    assert written == ["Dogs", "Dogs"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("GET /v2/glossaries/invalid_glossary_id", None, 400),
        (f"GET /v2/glossaries/{NOBODYS}", None, 404),
        (f"GET /v2/glossaries/{NOBODYS}/entries", None, 404),
        (f"DELETE /v2/glossaries/{NOBODYS}", None, 404),
        (f"PATCH /v3/glossaries/{NOBODYS}", {"name": "a"}, 404),
        (f"PATCH /v3/glossaries/{NOBODYS}", {"name": ""}, 400),
        (f"PUT /v3/glossaries/{NOBODYS}/dictionaries", DICTIONARY, 404),
        (f"DELETE /v3/glossaries/{NOBODYS}/dictionaries?source_lang=en&target_lang=de", None, 404),
        (f"DELETE /v3/glossaries/{NOBODYS}/dictionaries", None, 400),
        ("POST /v2/glossaries", V2 | {"target_lang": "XX"}, 400),
        ("POST /v2/glossaries", V2 | {"entries": "a" * 201 + "\tb"}, 400),
        ("POST /v2/glossaries", V2 | {"name": "a" * 1025}, 400),
        ("POST /v3/glossaries", {"name": "Dogs"}, 400),
    ],
)
async def test_what_is_not_there_or_wrong_is_told(site: Site, path: str, body: Any, status: int) -> None:
    method, _, target = path.partition(" ")
    answer = await site.call(method, target, body)

    assert answer.status == status
    assert answer.json["message"]


async def test_a_wrong_entry_is_named(site: Site) -> None:
    answer = await site.call("POST", "/v2/glossaries", V2 | {"entries": "a\tb\nc\t" + "d" * 201})

    assert answer.json == {
        "message": "Invalid glossary entries provided",
        "detail": "Key with the index 1: must have 1 to 200 characters, not all white space, not 201",
    }


async def test_changes_at_once_all_happen(site: Site) -> None:
    identity = (await site.call("POST", "/v3/glossaries", V3)).json["glossary_id"]
    words = [f"word{index}" for index in range(4)]

    answers = await asyncio.gather(
        *(
            site.call(
                "PATCH", f"/v3/glossaries/{identity}", {"dictionaries": [DICTIONARY | {"entries": f"{word}\tWort"}]}
            )
            for word in words
        )
    )

    assert [each.status for each in answers] == [200] * len(words)
    entries = await entries_of(site, identity)
    assert {line.split("\t")[0] for line in entries.split("\n")} == {"dog", *words}


async def test_without_room_a_change_is_refused_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = (await site.call("POST", "/v3/glossaries", V3)).json["glossary_id"]
    monkeypatch.setattr(kept_glossaries, "ALL_BYTES", 1)

    answer = await site.call("PUT", f"/v3/glossaries/{identity}/dictionaries", DICTIONARY | {"entries": "a\tb"})

    assert (answer.status, "must take at most" in answer.json["message"]) == (400, True)
    assert await entries_of(site, identity) == "dog\tHund"


async def test_tenants_have_glossaries_of_their_own(opening_http: OpenSite, metrics: Metrics, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    lines = [f'[tenants.{name}]\nkeys = [{{ sha256 = "{hash_key(name).hex()}" }}]\n' for name in ("one", "two")]
    keys.write_text("".join(lines))
    async with opening_http(Access(metrics.access, keys=keys)) as site:
        one, two = {"authorization": "DeepL-Auth-Key one"}, {"authorization": "DeepL-Auth-Key two"}
        identity = (await site.call("POST", "/v2/glossaries", V2, **one)).json["glossary_id"]
        asked = {"text": "A dog.", "source_lang": "en", "target_lang": "de", "glossary_id": identity}

        listed = await site.call("GET", "/v2/glossaries", **two)
        others = [await site.call("POST", "/v2/translate", asked, **two)]
        others += [await site.call(method, f"/v3/glossaries/{identity}", **two) for method in ("GET", "DELETE")]
        own = await site.call("GET", f"/v3/glossaries/{identity}", **one)

    assert listed.json == {"glossaries": []}
    assert [each.status for each in others] == [400, 404, 404]
    assert own.status == 200
