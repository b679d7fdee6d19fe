"""Google's service behind a real gRPC server; the engine echoes."""

from pathlib import Path

import grpc

from server.fronts.v1 import google_pb2 as google
from server.models.glossaries import Glossaries
from server.telemetry.metrics import Metrics
from tests.server.rpc.parts import Public, told

SERVICE = "/google.cloud.translation.v3.TranslationService"
PARENT = "projects/p/locations/global"


async def test_texts_are_translated(public: Public) -> None:
    request = google.TranslateTextRequest(contents=["<b>A dog.</b>", ""], target_language_code="de", parent=PARENT)

    for service in (SERVICE, SERVICE.replace("v3", "v3beta1")):
        answer = await public.ask(f"{service}/TranslateText", request, google.TranslateTextResponse)

        assert [each.translated_text for each in answer.translations] == ["<b>A dog.</b>", ""]
        assert answer.translations[0].detected_language_code == "en"


async def test_glossaries_are_listed_and_used(public: Public, metrics: Metrics, tmp_path: Path) -> None:
    (tmp_path / "it.tsv").write_text("en\tde\ndog\tdog\n")
    public.translator.glossaries = Glossaries(tmp_path, metrics.glossaries)
    config = google.TranslateTextGlossaryConfig(glossary=f"{PARENT}/glossaries/it")
    request = google.TranslateTextRequest(
        contents=["A dog."], source_language_code="en", target_language_code="de", glossary_config=config
    )

    async with public.translator.glossaries.followed():
        answer = await public.ask(f"{SERVICE}/TranslateText", request, google.TranslateTextResponse)
        listed = await public.ask(
            f"{SERVICE}/ListGlossaries", google.ListGlossariesRequest(parent=PARENT), google.ListGlossariesResponse
        )
        found = await public.ask(
            f"{SERVICE}/GetGlossary", google.GetGlossaryRequest(name=config.glossary), google.Glossary
        )

    assert answer.glossary_translations[0].translated_text == "A dog."
    assert [each.name for each in listed.glossaries] == [config.glossary]
    assert found == listed.glossaries[0]


async def test_languages_are_listed_and_detected(public: Public) -> None:
    languages = await public.ask(
        f"{SERVICE}/GetSupportedLanguages", google.GetSupportedLanguagesRequest(), google.SupportedLanguages
    )
    detected = await public.ask(
        f"{SERVICE}/DetectLanguage", google.DetectLanguageRequest(content="A dog."), google.DetectLanguageResponse
    )

    assert [each.language_code for each in languages.languages] == ["de", "en"]
    assert [each.language_code for each in detected.languages] == ["en"]


async def test_errors_name_googles_fields(public: Public) -> None:
    unknown = google.TranslateTextRequest(
        contents=["a"],
        source_language_code="en",
        target_language_code="de",
        glossary_config=google.TranslateTextGlossaryConfig(glossary="projects/p/locations/l/glossaries/no"),
    )

    code, words = await told(public.ask(f"{SERVICE}/TranslateText", unknown, google.TranslateTextResponse))

    assert code is grpc.StatusCode.NOT_FOUND
    assert words.startswith("glossary_config.glossary: no ")
