import pytest

from babelserve.formats.document import HTML, BadFile
from babelserve.formats.xlsx import read_xlsx
from tests.babelserve.formats.files import XLSX, archive, members, translated
from tests.babelserve.scripted_server import upper

STRINGS, SHEET = "xl/sharedStrings.xml", "xl/worksheets/sheet1.xml"


def test_texts_of_cells_are_texts_but_headings_formulas_and_numbers_are_not() -> None:
    read = read_xlsx(archive(XLSX))

    assert read.mime_type == HTML
    assert read.texts == ["A dog", 'A <span id="1">red</span> car', "Inline"]


def test_texts_are_written_with_their_formats_and_all_else_stays() -> None:
    changed = members(translated(read_xlsx(archive(XLSX)), upper))

    strings = changed[STRINGS].decode()
    assert '<si><t xml:space="preserve">A DOG</t><phoneticPr fontId="1"/></si>' in strings
    assert '<r><rPr><b/></rPr><t xml:space="preserve">RED</t></r>' in strings
    assert "<si><t>Price &amp; tax</t></si>" in strings
    assert "<si><t>tab_x0009_</t></si>" in strings
    assert '<f>A1&amp;"x"</f><v>word</v>' in changed[SHEET].decode()
    assert '<is><t xml:space="preserve">INLINE</t></is>' in changed[SHEET].decode()


def test_texts_that_stay_leave_the_same_bytes() -> None:
    data = archive(XLSX)

    assert members(translated(read_xlsx(data), lambda text: text)) == members(data)


def test_other_files_are_refused() -> None:
    with pytest.raises(BadFile, match=r"is no XLSX: it has no xl/workbook.xml"):
        read_xlsx(archive({"word/document.xml": "<a/>"}))
