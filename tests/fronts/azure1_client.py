"""Every call of azure-ai-translation-text 1, which speaks version 3.0; run in its environment, with the address."""

import sys
from collections.abc import Callable

from azure.ai.translation.text import TextTranslationClient
from azure.ai.translation.text.models import (
    DictionaryExampleTextItem,
    InputTextItem,
    ProfanityAction,
    ProfanityMarker,
    TextType,
)
from azure.core import MatchConditions
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotModifiedError


def main(address: str) -> None:
    """Makes the calls. Raises AssertionError."""
    for url in (address, f"{address}/azure"):
        client = TextTranslationClient(endpoint=url, credential=AzureKeyCredential("key"))
        (item,) = client.translate(body=["A dog runs."], to_language=["de"], from_language="en")
        assert (item.translations[0].to, item.translations[0].text) == ("de", "Ein Hund läuft.")
        assert item.detected_language is None
    translate(client)
    ask(client)
    refuse(client)


def translate(client: TextTranslationClient) -> None:
    """Translates with every option that is served."""
    (item,) = client.translate(body=["Der Hund läuft über das Feld."], to_language=["en"])
    assert item.detected_language.language == "de"
    assert 0 <= item.detected_language.score <= 1
    several = client.translate(
        body=["A dog runs.", "A man sits."], to_language=["de", "de-DE"], from_language="en", category="general"
    )
    assert [[each.text for each in item.translations] for item in several] == [
        ["Ein Hund läuft.", "Ein Hund läuft."],
        ["Ein Mann sitzt.", "Ein Mann sitzt."],
    ]
    (item,) = client.translate(
        body=["<b>A dog runs.</b>"],
        to_language=["de"],
        from_language="en",
        text_type="Html",
        profanity_action="NoAction",
    )
    assert item.translations[0].text == "<b>Ein Hund läuft.</b>"
    text = "A dog runs. A man sits."
    (item,) = client.translate(
        body=[text], to_language=["de"], from_language="en", include_alignment=True, include_sentence_length=True
    )
    (found,) = item.translations
    assert sum(found.sent_len.src_sent_len) == len(text)
    assert sum(found.sent_len.trans_sent_len) == len(found.text)
    assert (len(found.sent_len.src_sent_len), len(found.sent_len.trans_sent_len)) == (2, 2)
    pairs = [[tuple(map(int, side.split(":"))) for side in pair.split("-")] for pair in found.alignment.proj.split()]
    words = {text[a : b + 1]: found.text[c : d + 1] for (a, b), (c, d) in pairs}
    assert (words["dog"], words["man"]) == ("Hund", "Mann")
    (item,) = client.translate(
        body=[InputTextItem(text="A dog runs.")],
        to_language=["de"],
        from_language="en",
        from_script="Latn",
        text_type=TextType.PLAIN,
        profanity_action=ProfanityAction.NO_ACTION,
        profanity_marker=ProfanityMarker.ASTERISK,
        suggested_from="fr",
        client_trace_id="a5cd2b0c-1a0e-4c54-8b2f-0f3c3ed5e3a1",
    )
    assert item.translations[0].text == "Ein Hund läuft."
    (item,) = client.translate(
        body=["<p>A dog runs.</p>"],
        to_language=["de"],
        from_language="en",
        text_type="html",
        include_alignment=True,
        include_sentence_length=True,
    )
    assert (item.translations[0].alignment, item.translations[0].sent_len) == (None, None)
    (item,) = client.translate(body=["A dog runs."], to_language=["de"], from_language="en", category="not-served")
    assert item.translations[0].text == "Ein Hund läuft."


def ask(client: TextTranslationClient) -> None:
    """Asks for languages and sentences."""
    languages = client.get_supported_languages()
    assert languages.translation["de"].native_name == "Deutsch"
    assert (languages.transliteration, languages.dictionary) == ({}, {})
    only = client.get_supported_languages(scope="translation", accept_language="fr")
    assert only.translation["en"].dir == "ltr"
    assert only.dictionary is None
    others = client.get_supported_languages(scope="transliteration,dictionary")
    assert (others.translation, others.transliteration, others.dictionary) == (None, {}, {})
    tags: list[str] = []
    client.get_supported_languages(cls=lambda _, __, headers: tags.append(headers["ETag"]))
    try:
        client.get_supported_languages(etag=tags[0], match_condition=MatchConditions.IfModified)
    except ResourceNotModifiedError:
        pass
    else:
        raise AssertionError
    text = "How are you? I am fine. What did you do today?"
    (given,) = client.find_sentence_boundaries(body=[text], language="en")
    assert given.sent_len == [13, 11, 22]
    (found,) = client.find_sentence_boundaries(body=["Der Hund läuft über das Feld. Ein Mann sitzt."])
    assert found.detected_language.language == "de"
    assert found.sent_len == [30, 15]


def refuse(client: TextTranslationClient) -> None:
    """Makes calls that are refused."""
    refused: dict[int, Callable[[], object]] = {
        400036: lambda: client.translate(body=["A dog."], to_language=["zz"], from_language="en"),
        400035: lambda: client.translate(body=["A dog."], to_language=["de"], from_language="zz"),
        400071: lambda: client.translate(body=["A dog."], to_language=["de"], text_type="pdf"),
        400042: lambda: client.translate(body=["A dog."], to_language=["de"], profanity_action="Marked"),
        400079: lambda: client.translate(
            body=["A dog."], to_language=["de"], category="not-served", allow_fallback=False
        ),
        400080: lambda: client.transliterate(body=["a"], language="hi", from_script="Deva", to_script="Latn"),
        400006: lambda: client.translate(body=["A dog."], to_language=["de"], from_script="Latn"),
        400023: lambda: client.lookup_dictionary_entries(body=["a"], from_language="en", to_language="de"),
    }
    wrong: list[tuple[int, Callable[[], object]]] = [
        (400042, lambda: client.translate(body=["A dog."], to_language=["de"], profanity_action="Deleted")),
        (400080, lambda: client.translate(body=["A dog."], to_language=["de"], from_language="en", to_script="Latn")),
        (
            400023,
            lambda: client.lookup_dictionary_examples(
                body=[DictionaryExampleTextItem(text="a", translation="b")], from_language="en", to_language="de"
            ),
        ),
        (400035, lambda: client.find_sentence_boundaries(body=["A dog."], language="zz")),
        (400000, lambda: client.translate(body=[], to_language=["de"], from_language="en")),
    ]
    for number, call in [*refused.items(), *wrong]:
        try:
            call()
        except HttpResponseError as error:
            assert (error.status_code, error.error.code) == (400, number), error
        else:
            raise AssertionError(number)


main(sys.argv[1])
