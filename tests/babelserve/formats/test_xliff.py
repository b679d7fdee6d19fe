import pytest

from babelserve.formats.xliff import XLIFF, read_xliff

OLD = """<?xml version="1.0"?>
<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<x:file{} original="a > b" source-language='en'><x:body><x:trans-unit id="1">
<x:source>Hi</x:source>{}</x:trans-unit></x:body></x:file><x:file target-language="{}"/></x:xliff>
"""
NEW = """<xliff{} version="2.0" srcLang="en"><file id="f"><unit id="1"><segment>
<source>Hi</source>{}</segment></unit></file></xliff>"""


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        (OLD.format("", "", "fr"), ("", "<x:t/>", "fr"), (' target-language="pt-BR"', "<x:t/>", "pt-BR")),
        (NEW.format(" trgLang='fr'", ""), (" trgLang='fr'", "<t/>"), (" trgLang='pt-BR'", "<t/>")),
        (NEW.format("", ""), ("", "<t/>"), (' trgLang="pt-BR"', "<t/>")),
    ],
)
def test_the_file_gets_the_language_of_its_targets(
    source: str, translation: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    form = OLD if "1.2" in source else NEW
    document = read_xliff(source.encode())

    assert (document.mime_type, document.texts) == (XLIFF, [source])
    assert document.write([form.format(*translation)], "pt-BR") == (form.format(*expected).encode(), [])


def test_a_translation_with_other_tags_does_not_fit() -> None:
    source = NEW.format("", "")

    assert read_xliff(source.encode()).write([source.replace("<file", "<file b='c'")], "de")[1] == [0]


def test_hostile_text_takes_time_in_proportion() -> None:
    for text in ("<file " * 200_000, "<file a='" * 200_000, "<xliff" + " version" * 200_000):
        assert read_xliff(text.encode()).texts == [text]
