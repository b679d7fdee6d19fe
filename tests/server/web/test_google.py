"""Google's API over a real socket; the engine echoes."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from server.access.access import Access
from server.access.keys import hash_key
from server.telemetry.metrics import Metrics
from tests.server.web.conftest import OpenSite, Site

V2 = "/language/translate/v2"
V3 = "/v3/projects/p/locations/global"
ASKED = {"q": ["A dog runs."], "source": "en", "target": "de"}
POSTED = {"contents": ["A dog runs."], "sourceLanguageCode": "en", "targetLanguageCode": "de"}


@pytest.mark.parametrize("prefix", ["", "/google"])
async def test_texts_are_translated_in_both_versions(site: Site, metrics: Metrics, prefix: str) -> None:
    form = urlencode({"q": "A dog runs.", "source": "en", "target": "de"})
    answers = [
        await site.call("POST", prefix + V2, ASKED),
        await site.call("GET", f"{prefix}{V2}?{form}"),
        await site.call("POST", prefix + V2, form.encode(), content_type="application/x-www-form-urlencoded"),
    ]
    third = await site.call("POST", f"{prefix}{V3}:translateText?$alt=json", POSTED)

    for answer in answers:
        assert (answer.status, answer.json) == (200, {"data": {"translations": [{"translatedText": "A dog runs."}]}})
    assert (third.status, third.json) == (200, {"translations": [{"translatedText": "A dog runs."}]})
    labels = {"front": "google", "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 4


async def test_languages_are_told(site: Site) -> None:
    names = await site.call("GET", f"{V2}/languages?target=en")
    listed = await site.call("GET", f"{V3}/supportedLanguages")
    second = await site.call("POST", f"{V2}/detect", {"q": "Hello"})
    third = await site.call("POST", f"{V3}:detectLanguage", {"content": "Hello"})
    glossaries = await site.call("GET", "/v3beta1/projects/p/locations/l/glossaries?pageSize=5")

    assert names.json["data"]["languages"][0] == {"language": "de", "name": "German"}
    assert {each["languageCode"] for each in listed.json["languages"]} == {"de", "en"}
    assert second.json["data"]["detections"][0][0]["language"] == "en"
    assert third.json["languages"][0]["languageCode"] == "en"
    assert (glossaries.status, glossaries.json) == (200, {})


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", V2, ASKED | {"target": "zz"}, 400, "target: "),
        ("POST", V2, ASKED | {"format": "pdf"}, 400, "format: "),
        ("POST", V2, [], 400, "target: "),
        ("POST", V2, {"target": "de"}, 400, "q: "),
        ("GET", f"{V2}?q=%FF", None, 400, "body: "),
        ("POST", f"{V3}:translateText", POSTED | {"targetLanguageCode": "zz"}, 400, "target_language_code: "),
        ("POST", f"{V3}:translateText", {"contents": 1}, 400, "body: "),
        ("POST", f"{V3}:translateText", [], 400, "body: "),
        ("GET", f"{V3}/glossaries?pageSize=x", None, 400, "body: "),
        ("GET", f"{V3}/glossaries/no", None, 404, "name: "),
        ("POST", f"{V3}:romanizeText", {}, 501, "not served here"),
        ("DELETE", f"{V3}/glossaries/no", None, 501, "not served here"),
    ],
)
async def test_what_is_wrong_is_named(site: Site, method: str, path: str, body: Any, status: int, words: str) -> None:
    answer = await site.call(method, path, body)

    assert (answer.status, answer.json["error"]["code"]) == (status, status)
    assert words in answer.json["error"]["message"]


async def test_a_key_may_come_in_the_query(opening_http: OpenSite, metrics: Metrics, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[tenants.billing]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n')
    async with opening_http(Access(metrics.access, keys=keys)) as site:
        without = await site.call("POST", V2, ASKED)
        query = await site.call("POST", f"{V2}?key=key", ASKED)
        header = await site.call("POST", f"{V3}:translateText", POSTED, x_goog_api_key="key")

    assert (without.status, without.json["error"]["status"]) == (401, "UNAUTHENTICATED")
    assert (query.status, header.status) == (200, 200)
