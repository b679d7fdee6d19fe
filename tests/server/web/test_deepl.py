"""DeepL's API for texts over a real socket; the engine echoes."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.access.access import Access
from server.access.keys import hash_key
from server.errors import Overloaded
from server.telemetry.metrics import Metrics
from tests.server.echo_engine import EchoEngine
from tests.server.web.conftest import OpenSite, Site

ASKED = {"text": "A dog runs.", "target_lang": "DE"}
ANSWER = {"translations": [{"detected_source_language": "EN", "text": "A dog runs."}]}
FORM = {"content_type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("prefix", ["", "/deepl"])
@pytest.mark.parametrize("way", ["json", "form", "query", "get"])
async def test_texts_are_translated_however_they_come(site: Site, prefix: str, way: str) -> None:
    path, form = f"{prefix}/v2/translate", urlencode(ASKED)
    if way == "json":
        answer = await site.call("POST", path, ASKED | {"text": ["A dog runs."]}, content_type="application/json")
    elif way == "form":
        answer = await site.call("POST", path, form.encode(), **FORM)
    else:
        answer = await site.call("GET" if way == "get" else "POST", f"{path}?{form}")

    assert (answer.status, answer.json) == (200, ANSWER)


async def test_calls_are_counted_as_deepls(site: Site, metrics: Metrics) -> None:
    await site.call("POST", "/v2/translate", ASKED)

    labels = {"front": "deepl", "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 1


async def test_markup_is_read(site: Site) -> None:
    text = "<p>A <raw>x = 1</raw> dog runs.</p>\n<p>A man sits.</p>"
    asked = ASKED | {"text": [text], "tag_handling": "xml", "ignore_tags": ["raw"]}

    assert (await site.call("POST", "/v2/translate", asked)).json["translations"][0]["text"] == text
    wrong = asked | {"text": ["<p>A", "A dog."]}
    old = await site.call("POST", "/v2/translate", wrong)
    new = await site.call("POST", "/v2/translate", wrong | {"tag_handling_version": "v2"})
    assert [each["text"] for each in old.json["translations"]] == ["<p>A", "A dog."]
    assert new.status == 400
    assert new.json["message"].startswith("Tag handling parsing failed, please check input. text[0]: must be well-")


async def test_lines_are_joined(site: Site) -> None:
    answer = await site.call("POST", "/v2/translate", ASKED | {"text": "A dog\nruns.", "split_sentences": "nonewlines"})

    assert answer.json["translations"][0]["text"] == "A dog runs."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported."),
        ({"source_lang": "XX"}, "Value for 'source_lang' not supported."),
        ({"source_lang": "EN", "glossary_id": "none"}, "Glossary not found"),
        ({"text": ["a"] * 1025}, "text: must be from 1 to 1024 texts, not 1025"),
        (
            {"tag_handling": "xml", "ignore_tags": [str(name) for name in range(101)]},
            "ignore_tags: must be from 0 to 100",
        ),
    ],
)
async def test_what_is_wrong_is_answered_in_its_words(site: Site, changes: dict[str, Any], words: str) -> None:
    answer = await site.call("POST", "/v2/translate", ASKED | changes)

    assert answer.status == 400
    assert answer.json["message"].startswith(words)


async def test_texts_in_the_target_language_come_back(site: Site) -> None:
    answer = await site.call(
        "POST", "/v2/translate", {"text": ["A dog.", "b"], "source_lang": "DE", "target_lang": "DE"}
    )

    assert answer.status == 200
    assert [each["text"] for each in answer.json["translations"]] == ["A dog.", "b"]
    assert [each["detected_source_language"] for each in answer.json["translations"]] == ["DE", "DE"]


async def test_a_formality_reaches_the_search(site: Site, engine: EchoEngine) -> None:
    plain = await site.call("POST", "/v2/translate", ASKED)
    formal = await site.call("POST", "/v2/translate", ASKED | {"formality": "more"})

    assert (plain.status, formal.status) == (200, 200)
    assert [bool(options.suppressed) for options in engine.options] == [False, True]


async def test_a_refusal_says_when_to_come_back(site: Site, engine: EchoEngine) -> None:
    engine.refuses = Overloaded("queue is full", "sentences", retry_after_seconds=1.2)

    answer = await site.call("POST", "/v2/translate", ASKED)

    assert (answer.status, answer.headers["retry-after"]) == (429, "2")


async def test_a_key_comes_in_the_header_or_with_the_fields(
    opening_http: OpenSite, metrics: Metrics, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[tenants.billing]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n')
    async with opening_http(Access(metrics.access, keys=keys)) as site:
        header = await site.call("POST", "/v2/translate", ASKED, authorization="DeepL-Auth-Key key")
        field = await site.call("POST", "/v2/translate", ASKED | {"auth_key": "key"})
        bearer = await site.call("POST", "/v2/translate", ASKED, authorization="Bearer key")
        paths = ["GET /v2/usage", "GET /v2/languages", "GET /v2/glossary-language-pairs", "GET /v3/style_rules"]
        paths += [
            "POST /v2/write/rephrase",
            "GET /v3/languages/resources",
            "GET /v2/glossaries",
            "DELETE /v3/glossaries/x",
        ]
        calls = [(method, target) for method, _, target in (path.partition(" ") for path in paths)]
        wrong = [await site.call(*each, authorization="DeepL-Auth-Key no") for each in calls]
        without = await site.call("POST", "/v2/translate", ASKED)

    assert [each.status for each in (header, field, bearer)] == [200, 200, 200]
    assert [each.status for each in wrong[:-1]] == [403] * (len(paths) - 1)
    assert without.status == 403
    assert "DeepL-Auth-Key" in without.json["message"]


async def test_languages_usage_and_pairs_are_told(site: Site) -> None:
    target = await site.call("GET", "/v2/languages", b"type=target", **FORM)  # as deepl-python sends it
    query = await site.call("GET", "/v2/languages?type=target")

    assert (await site.call("GET", "/v2/languages")).json == [{"language": "EN", "name": "English"}]
    assert target.json == query.json == [{"language": "DE", "name": "German", "supports_formality": True}]
    assert (await site.call("GET", "/v2/usage")).json["character_count"] == 0
    pairs = (await site.call("GET", "/v2/glossary-language-pairs")).json
    assert pairs == {"supported_languages": [{"source_lang": "en", "target_lang": "de"}]}
    v3 = await site.call("GET", "/v3/languages?resource=translate_text")
    assert [each["lang"] for each in v3.json] == ["en", "de"]
    assert (await site.call("GET", "/v3/languages/resources")).json[0]["name"] == "glossary"


async def test_what_deepl_has_besides_is_empty_or_not_found(site: Site) -> None:
    assert (await site.call("GET", "/v3/style_rules?detailed=true")).json == {"style_rules": []}
    memories = await site.call("GET", "/v3/translation_memories")
    assert memories.json == {"translation_memories": [], "total_count": 0}
    for path in ("POST /v2/write/rephrase", "PUT /v3/style_rules/a/b", "POST /v3/style_rules"):
        method, _, target = path.partition(" ")
        answer = await site.call(method, target)
        assert (answer.status, answer.json["message"].split(":")[0]) == (404, "Not found")


NAMES = ["text", "target_lang", "source_lang", "tag_handling", "ignore_tags", "split_sentences", "formality"]
NAMES += ["glossary_id", "glossary_ids", "show_billed_characters", "model_type", "context", "name", "entries"]
NAMES += ["entries_format", "dictionaries", "dictionaries[0].entries", "dictionaries[0][source_lang]", "auth_key"]
words = st.sampled_from(["DE", "en", "xml", "html", "tsv", "csv", "0", "1", "nonewlines", "a\tb", "<p>A <b>", ""])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=9)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=9,
)
PATHS = ["/v2/translate", "/v2/languages", "/v3/languages", "/v2/glossaries", "/v3/glossaries"]
PATHS += [f"/v3/glossaries/96ab91fd-e715-41a1-adeb-5d701f84a483{rest}" for rest in ("", "/entries", "/dictionaries")]


async def test_no_request_is_the_servers_fault(site: Site) -> None:
    seen: list[tuple[str, str, bytes]] = []

    @settings(max_examples=300, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
        st.sampled_from(PATHS),
        st.dictionaries(st.sampled_from(NAMES), values, max_size=7),
        st.sampled_from(["json", "form", "query", "cut"]),
    )
    def collect(method: str, path: str, fields: dict[str, Any], way: str) -> None:
        form = urlencode({name: str(value) for name, value in fields.items()}, errors="replace")
        body = json.dumps(fields).encode()
        if way == "query":
            seen.append((method, f"{path}?{form}"[:4000], b""))
        else:
            seen.append((method, path, {"json": body, "form": form.encode(), "cut": body[:-2]}[way]))

    collect()
    for method, path, body in seen:
        answer = await site.call(method, path, body)
        assert answer.status < 500 or answer.status == 501, (method, path, body, answer.body)  # not implemented


async def test_long_queries_and_odd_paths_are_answered(site: Site) -> None:
    for path in ("/v2/glossaries/" + quote("a/../\n%"), "/v3/glossaries/%00", "/v2/document/" + "x" * 999):
        answer = await site.call("GET", path)
        assert 400 <= answer.status < 500
