"""Every call of Google's clients over HTTP that is served, versions 2 and 3; run with the address."""

import functools
import json
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import translate_v2, translate_v3

ADDRESS = sys.argv[1]
PARENT = "projects/p/locations/global"
HTML, TRANSLATED = "A <b>dog</b> runs.", "Ein <b>Hund</b> läuft."


def refused(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    """Checks that a call fails."""
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


def check_second(address: str) -> None:
    """Checks version 2."""
    client = translate_v2.Client(credentials=AnonymousCredentials(), client_options={"api_endpoint": address})
    found = client.translate(HTML, target_language="de", source_language="en")
    assert found == {"translatedText": TRANSLATED, "input": HTML}
    several = client.translate(
        ["A dog runs.", "Fish & chips"], target_language="de", format_="text", source_language="en", model="nmt"
    )
    assert [(each["translatedText"], each["model"]) for each in several] == [
        ("Ein Hund läuft.", "nmt"),
        ("Fisch & Chips", "nmt"),
    ]
    detected = client.translate("Das ist ein kleines Haus.")
    assert (detected["detectedSourceLanguage"], detected["translatedText"]) == ("de", "This is a small house.")
    assert client.detect_language("Der Hund läuft über das Feld.")["language"] == "de"
    assert [each["language"] for each in client.detect_language(["The dog runs over the field.", "Das Haus."])] == [
        "en",
        "de",
    ]
    assert {each["language"]: each["name"] for each in client.get_languages()} == {"de": "German", "en": "English"}
    assert client.translate(["A dog runs."], "de", "text", "en", (), "base")[0]["translatedText"] == "Ein Hund läuft."
    assert {each["name"] for each in client.get_languages(target_language="fr")} == {"English", "German"}
    (detected,) = client.detect_language(["Das ist ein kleines Haus."])
    assert (0.5 < detected["confidence"] <= 1, detected["input"]) == (True, "Das ist ein kleines Haus.")
    refused(
        lambda: client.translate("A", target_language="de", source_language="zz"), exceptions.BadRequest, "source: "
    )
    refused(lambda: client.translate("A", target_language="de", model="no"), exceptions.NotFound, "model: ")
    refused(lambda: client.translate("A", target_language="zz"), exceptions.BadRequest, "target: ")
    refused(lambda: client.translate("A", format_="pdf"), exceptions.BadRequest, "format: ")
    refused(lambda: client.translate("A", customization_ids="a"), exceptions.BadRequest, "cid: ")
    query = urllib.parse.urlencode({"q": "A dog runs.", "source": "en", "target": "de", "key": "any"})
    with urllib.request.urlopen(f"{address}/language/translate/v2?{query}") as answer:  # the test's server
        assert json.load(answer) == {"data": {"translations": [{"translatedText": "Ein Hund läuft."}]}}


def check_third() -> None:
    """Checks version 3."""
    transport = translate_v3.TranslationServiceClient.get_transport_class("rest")(
        host=ADDRESS, credentials=AnonymousCredentials(), url_scheme="http"
    )
    client = translate_v3.TranslationServiceClient(transport=transport)
    for parent in (PARENT, "projects/p"):
        request = {"parent": parent, "contents": [HTML], "source_language_code": "en", "target_language_code": "de"}
        (found,) = client.translate_text(request=request).translations
        assert (found.translated_text, found.detected_language_code) == (TRANSLATED, "")
    request = {"parent": PARENT, "contents": ["Das Haus."], "target_language_code": "en", "mime_type": "text/plain"}
    (found,) = client.translate_text(request=request | {"model": f"{PARENT}/models/general/nmt"}).translations
    assert (found.translated_text, found.detected_language_code) == ("The house.", "de")
    (language,) = client.detect_language(parent=PARENT, content="Der Hund läuft über das Feld.").languages
    assert language.language_code == "de"
    languages = client.get_supported_languages(parent=PARENT, display_language_code="en").languages
    assert [(each.language_code, each.display_name) for each in languages] == [("de", "German"), ("en", "English")]
    assert list(client.list_glossaries(parent=PARENT)) == []
    name = client.glossary_path("p", "global", "no")
    refused(lambda: client.get_glossary(name=name), exceptions.NotFound, "name: ")
    refused(
        lambda: client.translate_text(request=request | {"target_language_code": "zz"}),
        exceptions.BadRequest,
        "target_language_code: ",
    )
    refused(lambda: client.romanize_text(parent=PARENT, contents=["a"]), exceptions.MethodNotImplemented, "not served")
    refused(lambda: client.delete_glossary(name=name), exceptions.MethodNotImplemented, "not served")
    pair = {"source_language_code": "en", "target_language_codes": ["de"]}
    dataset = f"{PARENT}/adaptiveMtDatasets/a"
    for call, asked in (
        (client.batch_translate_text, {"parent": PARENT} | pair),
        (client.translate_document, {"parent": PARENT, "target_language_code": "de"}),
        (client.adaptive_mt_translate, {"parent": PARENT, "dataset": dataset, "content": ["a"]}),
        (client.list_adaptive_mt_datasets, {"parent": PARENT}),
        (client.get_adaptive_mt_dataset, {"name": dataset}),
        (client.list_models, {"parent": PARENT}),
        (client.list_datasets, {"parent": PARENT}),
        (client.create_glossary, {"parent": PARENT, "glossary": {"name": name}}),
    ):
        refused(functools.partial(call, request=asked), exceptions.MethodNotImplemented, "not served")


check_second(ADDRESS)
check_second(f"{ADDRESS}/google")
check_third()
