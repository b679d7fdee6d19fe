"""LibreTranslate's API over a real socket; the engine echoes."""

from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from server.access.access import Access
from server.access.keys import hash_key
from server.documents.documents import Documents
from server.fronts.backend import Backend
from server.telemetry.metrics import Metrics
from server.translation.long_messages import LongMessages
from server.web import exchange
from server.web.bodies import Bodies
from server.web.libretranslate import LibreTranslateApi
from server.web.libretranslate_files import LibreTranslateFiles
from tests.server.echo_engine import EchoEngine
from tests.server.web.conftest import OpenSite, Site

ASKED = {"q": "A dog runs.", "source": "en", "target": "de"}
FORM = {"content_type": "application/x-www-form-urlencoded"}


async def test_the_type_of_a_body_that_is_not_there_does_no_harm(site: Site) -> None:
    languages = await site.call("GET", "/languages", content_type="application/json")
    translation = await site.call("POST", "/translate", b"", content_type="application/json")

    assert languages.status == 200
    assert (translation.status, translation.json) == (400, {"error": "Invalid request: missing q parameter"})


async def test_the_description_has_the_paths_that_are_served(site: Site) -> None:
    unused = exchange.Site(cast("Backend", None), Bodies(LongMessages()))
    fronts = (LibreTranslateApi(unused), LibreTranslateFiles(unused, cast("Documents", None)))
    described = (await site.call("GET", "/spec")).json["paths"]

    assert (await site.call("GET", "/libretranslate/spec")).json["paths"] == described
    served = {
        route.path for front in fronts for route in front.routes() if not route.path.startswith("/libretranslate")
    }
    assert set(described) == served - {"/spec", "/suggest"}


@pytest.mark.parametrize("prefix", ["", "/libretranslate"])
@pytest.mark.parametrize("way", ["json", "form", "query"])
async def test_texts_are_translated_however_they_come(site: Site, prefix: str, way: str) -> None:
    path, form = f"{prefix}/translate", urlencode(ASKED)
    if way == "json":
        answer = await site.call("POST", path, ASKED, content_type="application/json")
    elif way == "form":
        answer = await site.call("POST", path, form.encode(), **FORM)
    else:
        answer = await site.call("POST", f"{path}?{form}")

    assert (answer.status, answer.json) == (200, {"translatedText": "A dog runs."})


async def test_texts_in_the_target_language_come_back(site: Site) -> None:
    answer = await site.call("POST", "/translate", {"q": ["A dog."], "source": "de", "target": "de"})
    wrong = await site.call("POST", "/translate", {"q": "A", "source": "zz", "target": "zz"})

    assert (answer.status, answer.json) == (200, {"translatedText": ["A dog."]})
    assert (wrong.status, wrong.json["error"]) == (400, "zz is not supported")


async def test_many_fields_of_a_form_are_many_texts(site: Site, metrics: Metrics) -> None:
    answer = await site.call("POST", "/translate", urlencode([*ASKED.items(), ("q", "A man.")]).encode(), **FORM)

    assert answer.json == {"translatedText": ["A dog runs.", "A man."]}
    labels = {"front": "libretranslate", "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 1


async def test_alternatives_are_other_translations(site: Site, engine: EchoEngine) -> None:
    answer = await site.call("POST", "/translate", ASKED | {"alternatives": 2})

    assert engine.options[-1].num_hypotheses == 3
    assert answer.json["translatedText"] == "A dog runs."
    assert 1 <= len(answer.json["alternatives"]) <= 2


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "Invalid request: missing q parameter"),
        (ASKED | {"source": "zz"}, "zz is not supported"),
        (ASKED | {"target": "zz"}, "zz is not supported"),
        (ASKED | {"alternatives": 99}, "Invalid request: alternatives parameter must be <= 7"),
        (ASKED | {"format": "pdf"}, "pdf format is not supported"),
        ([], "body: must be a JSON object"),
    ],
)
async def test_what_is_wrong_is_answered_in_its_words(site: Site, asked: Any, words: str) -> None:
    answer = await site.call("POST", "/translate", asked, content_type="application/json")

    assert (answer.status, answer.json) == (400, {"error": words})


async def test_a_key_comes_with_the_fields_or_in_a_header(
    opening_http: OpenSite, metrics: Metrics, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[tenants.billing]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n')
    async with opening_http(Access(metrics.access, keys=keys)) as site:
        without = await site.call("POST", "/translate", ASKED)
        wrong = await site.call("POST", "/translate", ASKED | {"api_key": "no"})
        right = await site.call("POST", "/translate", ASKED | {"api_key": "key"})
        header = await site.call("POST", "/translate", ASKED, authorization="Bearer key")
        listed = await site.call("GET", "/languages?api_key=key")
        settings = await site.call("GET", "/frontend/settings?api_key=key")

    assert (wrong.status, wrong.json) == (403, {"error": "Invalid API key"})
    assert [each.status for each in (without, right, header, listed)] == [403, 200, 200, 200]
    assert settings.json["keyRequired"] is True


async def test_the_rest_is_answered_as_by_a_server_without_suggestions(site: Site) -> None:
    assert (await site.call("GET", "/languages")).json == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    assert (await site.call("POST", "/detect", {"q": "Hello"})).json == [{"confidence": 0, "language": "en"}]
    assert (await site.call("POST", "/detect", {})).json == {"error": "Invalid request: missing q parameter"}
    assert (await site.call("GET", "/frontend/settings")).json["keyRequired"] is False
    assert (await site.call("GET", "/health")).json == {"status": "ok"}
    assert (await site.call("POST", "/suggest", {})).status == 403
    assert (await site.call("GET", "/translate")).status == 405
    site.running.refuse()
    assert (await site.call("GET", "/health")).status == 503
