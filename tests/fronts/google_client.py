"""Every call of google-cloud-translate that is served; run in its own environment.

Arguments: the server's address; that of one with TLS and keys, the file of its authority, and a key.
"""

import asyncio
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

ADDRESS, TLS_ADDRESS, AUTHORITY, KEY = sys.argv[1:]
os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = AUTHORITY  # read when gRPC is imported

import grpc  # noqa: E402
from google.api_core import exceptions  # noqa: E402
from google.auth.credentials import AnonymousCredentials  # noqa: E402
from google.cloud import translate_v3, translate_v3beta1  # noqa: E402

PARENT = "projects/p/locations/global"
UNSERVED = (
    *("translate_document", "batch_translate_text", "batch_translate_document", "create_glossary", "update_glossary"),
    *("get_glossary_entry", "list_glossary_entries", "create_glossary_entry", "update_glossary_entry"),
    *("delete_glossary_entry", "create_dataset", "get_dataset", "list_datasets", "delete_dataset", "import_data"),
    *("export_data", "list_examples", "create_model", "list_models", "get_model", "delete_model"),
    *("create_adaptive_mt_dataset", "delete_adaptive_mt_dataset", "get_adaptive_mt_dataset", "adaptive_mt_translate"),
    *("list_adaptive_mt_datasets", "get_adaptive_mt_file", "delete_adaptive_mt_file", "import_adaptive_mt_file"),
    *("list_adaptive_mt_files", "list_adaptive_mt_sentences"),
)
HTML, TRANSLATED = "A <b>dog</b> runs.", "Ein <b>Hund</b> läuft."


def client_of(version: Any) -> Any:
    """Returns a client without TLS."""
    transport = version.TranslationServiceClient.get_transport_class("grpc")(channel=grpc.insecure_channel(ADDRESS))
    return version.TranslationServiceClient(transport=transport)


def translate(client: Any, *contents: str, **fields: Any) -> Any:
    """Returns the answer of TranslateText."""
    request = {"parent": PARENT, "contents": contents, "source_language_code": "en", "target_language_code": "de"}
    return client.translate_text(request=request | fields)


def check_translations(client: Any) -> None:
    """Checks what TranslateText does with types, models and languages."""
    assert [each.translated_text for each in translate(client, HTML, "A man.").translations] == [
        TRANSLATED,
        "Ein Mann.",
    ]
    plain = translate(client, "Fish & chips\nA dog runs.", mime_type="text/plain", source_language_code="en-US")
    assert plain.translations[0].translated_text == "Fisch & Chips\nEin Hund läuft."
    marked = translate(client, "A **dog** runs.", "# A dog.", mime_type="text/markdown", target_language_code="de-DE")
    assert [each.translated_text for each in marked.translations] == ["Ein **Hund** läuft.", "# Ein Hund."]
    (german,) = translate(client, "Das Haus.", source_language_code="de", target_language_code="en-US").translations
    assert german.translated_text == "The house."
    for name in ("general/nmt", "general/base", "en-de"):
        model = f"{PARENT}/models/{name}"
        assert translate(client, HTML, model=model).translations[0].model == model
    assert translate(client, HTML).translations[0].detected_language_code == ""
    (detected,) = translate(client, HTML, source_language_code="", labels={"a": "b"}).translations
    assert (detected.translated_text, detected.detected_language_code) == (TRANSLATED, "en")


def check_glossaries(client: Any) -> None:
    """Checks lists of glossaries, and a translation with one."""
    name = client.glossary_path("p", "global", "it")
    (glossary,) = client.list_glossaries(parent=PARENT)
    assert (glossary.name, glossary.entry_count, glossary.language_pair.target_language_code) == (name, 1, "de")
    assert client.get_glossary(name=name) == glossary
    assert [each.name for each in client.list_glossaries(request={"parent": PARENT, "page_size": 1})] == [name]
    answer = translate(client, "The user sleeps.", glossary_config={"glossary": name, "ignore_case": True})
    (with_glossary,) = answer.glossary_translations
    assert "Anwender" in with_glossary.translated_text
    assert with_glossary.glossary_config.glossary == name
    tagged = translate(client, "<b>The user</b> sleeps.", glossary_config={"glossary": "it"}, source_language_code="")
    assert "Anwender" in tagged.glossary_translations[0].translated_text


def check_languages(client: Any) -> None:
    """Checks lists of languages, and detection."""
    everything = client.get_supported_languages(parent=PARENT, display_language_code="en").languages
    assert [(each.language_code, each.display_name) for each in everything] == [("de", "German"), ("en", "English")]
    model = client.get_supported_languages(request={"parent": PARENT, "model": f"{PARENT}/models/en-de"}).languages
    facts = [(each.language_code, each.support_source, each.support_target) for each in model]
    assert facts == [("de", False, True), ("en", True, False)]
    unnamed = client.get_supported_languages(parent=PARENT).languages
    assert {each.display_name for each in unnamed} == {""}
    html = client.detect_language(parent=PARENT, content="<p>The dog runs over the field.</p>", mime_type="text/html")
    assert [each.language_code for each in html.languages] == ["en"]
    (found,) = client.detect_language(parent=PARENT, content="Das ist ein kleines Haus.").languages
    assert found.language_code == "de"
    assert 0.5 < found.confidence <= 1


def refused(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    """Checks that a call fails with an exception of Google's."""
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


def check_errors(client: Any) -> None:
    """Checks the exceptions of calls that fail."""
    invalid, missing, unserved = exceptions.InvalidArgument, exceptions.NotFound, exceptions.MethodNotImplemented
    refused(lambda: translate(client), invalid, "contents: must be from 1 to 1024 texts")
    refused(lambda: translate(client, "a", target_language_code="zz"), invalid, "target_language_code: ")
    refused(lambda: translate(client, "a", mime_type="image/png"), invalid, "mime_type: ")
    refused(lambda: translate(client, "a", model="models/general/translation-llm"), missing, "model: ")
    no_glossary = {"glossary": f"{PARENT}/glossaries/no"}
    refused(lambda: translate(client, "a", glossary_config=no_glossary), missing, "glossary_config.glossary: ")
    script = {"enable_transliteration": True}
    refused(lambda: translate(client, "a", transliteration_config=script), invalid, "transliteration_config: ")
    refused(lambda: client.get_glossary(name=f"{PARENT}/glossaries/no"), missing, "name: ")
    refused(lambda: client.list_glossaries(request={"parent": PARENT, "filter": "a"}), invalid, "filter: ")
    refused(lambda: client.detect_language(parent=PARENT), invalid, "content: ")
    refused(
        lambda: client.batch_translate_text(request={"parent": PARENT}), unserved, "BatchTranslateText is not served"
    )
    refused(lambda: client.delete_glossary(name=f"{PARENT}/glossaries/it"), unserved, "DeleteGlossary is not served")
    refused(lambda: client.romanize_text(request={"parent": PARENT}), unserved, "RomanizeText is not served")
    no_model = {"parent": PARENT, "model": f"{PARENT}/models/no"}
    refused(lambda: client.get_supported_languages(request=no_model), missing, "model: ")
    refused(lambda: translate(client, *["a"] * 1025), invalid, "contents: must be from 1 to 1024 texts, not 1025")


def check_unserved(client: Any) -> None:
    """Checks that each other method is refused clearly."""
    for name in UNSERVED:
        words = f"{name.title().replace('_', '')} is not served"
        refused(functools.partial(getattr(client, name), request={}), exceptions.MethodNotImplemented, words)


async def check_asyncio() -> None:
    """Checks the client for asyncio."""
    async with grpc.aio.insecure_channel(ADDRESS) as channel:
        transport = translate_v3.TranslationServiceAsyncClient.get_transport_class("grpc_asyncio")(channel=channel)
        client = translate_v3.TranslationServiceAsyncClient(transport=transport)
        request = {"parent": PARENT, "contents": [HTML], "source_language_code": "en", "target_language_code": "de"}
        answer = await client.translate_text(request=request)
        assert [each.translated_text for each in answer.translations] == [TRANSLATED]
        assert [each.entry_count async for each in await client.list_glossaries(parent=PARENT)] == [1]


def check_keys() -> None:
    """Checks Google's own ways to say where and who, over TLS."""
    options = {"api_endpoint": TLS_ADDRESS}
    with_key = translate_v3.TranslationServiceClient(client_options=options | {"api_key": KEY})
    assert translate(with_key, HTML).translations[0].translated_text == TRANSLATED
    anonymous = translate_v3.TranslationServiceClient(client_options=options, credentials=AnonymousCredentials())
    refused(lambda: translate(anonymous, HTML), exceptions.Unauthenticated, "key")


def main() -> None:
    """Makes the calls. Raises AssertionError."""
    client, beta = client_of(translate_v3), client_of(translate_v3beta1)
    check_translations(client)
    check_translations(beta)
    check_glossaries(client)
    check_languages(client)
    check_errors(client)
    check_unserved(client)
    asyncio.run(check_asyncio())
    check_keys()


main()
