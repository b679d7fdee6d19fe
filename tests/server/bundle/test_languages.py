from server.bundle.languages import LanguagePair, Languages, SourceLanguage, TargetLanguage
from server.bundle.parsing import parse


def test_a_language_without_prefixes_is_an_empty_object() -> None:
    faults: list[str] = []

    languages = parse(Languages, {"source": {"en": {}}, "target": {"de": {"prefix": [4]}}}, "languages", faults)

    assert faults == []
    assert languages == Languages(source={"en": SourceLanguage()}, target={"de": TargetLanguage(prefix=(4,))})


def test_a_pair_of_revision_4_has_no_prefixes() -> None:
    pair = parse(LanguagePair, {"source": "en", "target": "de"}, "pair", [])

    assert (pair.source_prefix, pair.target_prefix) == ((), ())
