"""Every call of azure-ai-translation-text 2, which speaks version 2026-06-06; run with the address."""

import functools
import sys
from collections.abc import Callable

from azure.ai.translation.text import TextTranslationClient
from azure.ai.translation.text.models import TranslateInputItem, TranslationTarget
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError


def main(address: str) -> None:
    """Makes the calls. Raises AssertionError."""
    for url in (address, f"{address}/azure"):
        client = TextTranslationClient(endpoint=url, credential=AzureKeyCredential("key"))
        result = client.translate(body=["A dog runs.", "A man sits."], to_language=["de"], from_language="en")
        assert [item.translations[0].text for item in result] == ["Ein Hund läuft.", "Ein Mann sitzt."]
    inputs = [
        TranslateInputItem(text="Der Hund läuft über das Feld.", targets=[TranslationTarget(language="en")]),
        TranslateInputItem(
            text="<b>A dog runs.</b>",
            language="en",
            text_type="Html",
            targets=[
                TranslationTarget(language="de", profanity_action="NoAction", deployment_name="general"),
                TranslationTarget(language="de-DE"),
            ],
        ),
    ]
    first, second = client.translate(body=inputs)
    assert first.detected_language.language == "de"
    assert second.detected_language is None
    assert [(each.language, each.text) for each in second.translations] == [
        ("de", "<b>Ein Hund läuft.</b>"),
        ("de-DE", "<b>Ein Hund läuft.</b>"),
    ]
    assert second.translations[0].source_characters == len("<b>A dog runs.</b>")
    languages = client.get_supported_languages()
    assert (languages.translation["en"].name, languages.translation["en"].models) == ("English", [])
    assert languages.models == []
    assert client.get_supported_languages(scope="models").translation is None
    tones = [TranslationTarget(language="de", tone=tone) for tone in ("formal", "informal", "neutral")]
    (item,) = client.translate(body=[TranslateInputItem(text="How are you?", language="en", targets=tones)])
    texts = [each.text for each in item.translations]
    assert texts[:2] == ["Wie geht es Ihnen?", "Wie geht es dir?"]
    both = client.translate(body=["A dog runs."], to_language=["de", "de-DE"])
    assert [each.text for each in both[0].translations] == ["Ein Hund läuft."] * 2
    refuse(client)


def refuse(client: TextTranslationClient) -> None:
    """Makes calls that are refused."""
    item = TranslateInputItem(text="A dog.", targets=[TranslationTarget(language="de", gender="female")])
    english = TranslateInputItem(
        text="Ein Hund.", language="de", targets=[TranslationTarget(language="en", tone="formal")]
    )
    profane = TranslateInputItem(text="A dog.", targets=[TranslationTarget(language="de", profanity_action="Marked")])
    refused: dict[str, Callable[[], object]] = {
        "400036": lambda: client.translate(body=["A dog."], to_language=["zz"], from_language="en"),
        "400042": lambda: client.translate(body=[item]),
        "400080": lambda: client.transliterate(body=["a"], language="hi", from_script="Deva", to_script="Latn"),
    }
    calls = list(refused.items())
    calls += [("400042", functools.partial(client.translate, body=[each])) for each in (english, profane)]
    for number, call in calls:
        try:
            call()
        except HttpResponseError as error:
            assert (error.status_code, error.error.code) == (400, number), error
        else:
            raise AssertionError(number)


main(sys.argv[1])
