"""Azure's API over a real socket; the engine echoes."""

from pathlib import Path
from typing import Any

import pytest

from server.access.access import Access
from server.access.keys import hash_key
from server.telemetry.metrics import Metrics
from tests.server.echo_engine import EchoEngine
from tests.server.web.conftest import OpenSite, Site

V3, V2026 = "api-version=3.0", "api-version=2026-06-06"
TEXTS = [{"Text": "A dog runs."}]
INPUTS = {"inputs": [{"text": "A dog runs.", "targets": [{"language": "de"}]}]}
TRANSLATED = [
    {"detectedLanguage": {"language": "en", "score": 0.0}, "translations": [{"text": "A dog runs.", "to": "de"}]}
]


@pytest.mark.parametrize("prefix", ["", "/azure", "/translator/text/v3.0"])
async def test_texts_are_translated_in_both_versions(site: Site, metrics: Metrics, prefix: str) -> None:
    first = await site.call("POST", f"{prefix}/translate?{V3}&to=de", TEXTS)
    second = await site.call("POST", f"{prefix}/translate?{V2026}", INPUTS)

    assert (first.status, first.json) == (200, TRANSLATED)
    assert first.headers["x-metered-usage"] == "11"
    assert first.headers["x-requestid"] == first.headers["x-request-id"]
    assert second.json["value"][0]["translations"][0]["language"] == "de"
    labels = {"front": "azure", "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 2


async def test_a_call_without_a_version_is_not_azures_at_the_root(site: Site) -> None:
    root = await site.call("POST", "/translate?to=de", TEXTS)
    prefixed = await site.call("POST", "/azure/translate?to=de", TEXTS)
    unknown = await site.call("POST", "/translate?api-version=1&to=de", TEXTS)

    assert root.json == {"error": "Invalid request: missing q parameter"}  # LibreTranslate's
    for answer in (prefixed, unknown):
        assert (answer.status, answer.json["error"]["code"]) == (400, 400021)


async def test_an_error_of_each_version_has_its_form(site: Site) -> None:
    first = await site.call("POST", f"/translate?{V3}&to=zz", TEXTS)
    second = await site.call(
        "POST", f"/translate?{V2026}", {"inputs": [{"text": "A", "targets": [{"language": "zz"}]}]}
    )

    assert (first.status, first.json["error"]["code"]) == (400, 400036)
    assert first.json["error"]["message"].startswith("The target language is not valid. to: ")
    assert (second.status, second.json["error"]["code"]) == (400, "400036")


async def test_the_first_of_many_targets_that_fails_ends_the_call(site: Site, engine: EchoEngine) -> None:
    engine.is_holding = True
    answer = await site.call("POST", f"/translate?{V3}&to=de&to=zz", TEXTS)

    assert (answer.status, answer.json["error"]["code"]) == (400, 400036)
    await site.call("GET", "/healthz")
    assert all(future.cancelled() or future.done() for future in engine.futures)


async def test_a_model_that_is_missing_may_be_replaced(site: Site) -> None:
    asked = f"/translate?{V3}&to=de&category=other"

    assert (await site.call("POST", asked, TEXTS)).json == TRANSLATED
    strict = await site.call("POST", f"{asked}&allowFallback=false", TEXTS)
    assert (strict.status, strict.json["error"]["code"]) == (400, 400079)


async def test_languages_and_sentences_are_told(site: Site) -> None:
    languages = await site.call("GET", f"/languages?{V3}&scope=translation")
    again = await site.call("GET", f"/languages?{V3}&scope=translation", if_none_match=languages.headers["etag"])
    detected = await site.call("POST", f"/detect?{V3}", TEXTS)
    broken = await site.call("POST", f"/breaksentence?{V3}", [{"text": "A dog runs. A man."}, {"text": ""}])
    given = await site.call("POST", f"/breaksentence?{V3}&language=en", TEXTS)

    assert languages.json["translation"]["de"]["nativeName"] == "Deutsch"
    assert (again.status, again.body) == (304, b"")
    assert detected.json[0]["language"] == "en"
    assert [each["sentLen"] for each in broken.json] == [[12, 6], [0]]
    assert given.json == [{"sentLen": [11]}]


@pytest.mark.parametrize(
    ("path", "status", "number"),
    [
        (f"/transliterate?{V3}", 400, 400080),
        (f"/dictionary/lookup?{V3}&from=en&to=de", 400, 400023),
        (f"/dictionary/examples?{V3}&from=en&to=de", 400, 400023),
        (f"/transliterate?{V2026}", 400, "400080"),
        (f"/detect?{V2026}", 404, "404000"),
        (f"/breaksentence?{V3}&language=zz", 400, 400035),
        (f"/translate?{V3}&to=de&x=%FF", 400, 400000),
    ],
)
async def test_the_rest_is_refused_in_its_words(site: Site, path: str, status: int, number: Any) -> None:
    answer = await site.call("POST", path, TEXTS)

    assert (answer.status, answer.json["error"]["code"]) == (status, number)


async def test_a_key_comes_as_azures_clients_send_it(opening_http: OpenSite, metrics: Metrics, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[tenants.billing]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n')
    asked = f"/translate?{V3}&to=de"
    async with opening_http(Access(metrics.access, keys=keys)) as site:
        without = await site.call("POST", asked, TEXTS)
        right = await site.call("POST", asked, TEXTS, ocp_apim_subscription_key="key")
        query = await site.call("POST", f"{asked}&subscription-key=key", TEXTS)

    assert (without.status, without.json["error"]["code"]) == (401, 401000)
    assert (right.status, query.status) == (200, 200)
