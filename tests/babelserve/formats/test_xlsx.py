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
    assert '<si><t>A DOG</t><phoneticPr fontId="1"/></si>' in strings
    assert '<r><rPr><b/></rPr><t xml:space="preserve">RED</t></r>' in strings
    assert "<si><t>Price &amp; tax</t></si>" in strings
    assert "<si><t>tab_x0009_</t></si>" in strings
    assert '<f>A1&amp;"x"</f><v>word</v>' in changed[SHEET].decode()
    assert "<is><t>INLINE</t></is>" in changed[SHEET].decode()


def test_texts_that_stay_leave_the_same_bytes() -> None:
    data = archive(XLSX)

    assert members(translated(read_xlsx(data), lambda text: text)) == members(data)


PRICE = "Price_x000a_per kg"
ITEMS = {
    "a text": ('<t xml:space="preserve">Apples\n Two pears</t>', ["Apples", " Two pears"]),
    "as .NET writes it": (
        "<t>Apples_x000D_\r\nTwo_x000d_pears&#10;&#xD;&#x0a;Plums</t>",
        ["Apples", "Two", "pears", "Plums"],
    ),
    "a heading of a table": (f"<t>{PRICE}</t>", []),
    "another heading": ("<t>Price&#10;per kg</t>", []),
    "what is no escape": ("<t>_x005F_x000D_ is CR</t>", []),
    "CDATA": ("<t>One<![CDATA[\nTwo]]>Three</t>", ["One", "Three"]),
    "texts beside a run": (
        '<t>One</t><r><t xml:space="preserve">two</t></r><t>three</t>',
        ["One", "two", "three"],
    ),
}


@pytest.mark.parametrize(("item", "texts"), ITEMS.values(), ids=ITEMS)
def test_each_line_of_a_cell_is_a_text_and_its_breaks_stay(item: str, texts: list[str]) -> None:
    table = f'<table><tableColumn name="{PRICE}"/></table>'
    read = read_xlsx(
        archive({**XLSX, "xl/tables/table1.xml": table, STRINGS: f"<sst><si>{item}</si></sst>", SHEET: "<a/>"})
    )

    assert read.texts == texts
    for text in texts:
        item = item.replace(text, text.upper())
    assert members(translated(read, upper))[STRINGS].decode() == f"<sst><si>{item}</si></sst>"


def test_lines_of_runs_are_broken_by_tags() -> None:
    item = '<r><t>Apples_x000D_\n</t></r><r><rPr><b/></rPr><t xml:space="preserve">ripe\nPears</t></r>'
    read = read_xlsx(archive({**XLSX, STRINGS: f"<sst><si>{item}</si></sst>", SHEET: "<a/>"}))

    assert read.texts == ['<span id="1">Apples</span><br id="2">ripe<br id="3">Pears']
    written = members(translated(read, upper))[STRINGS].decode()
    for run in ("<t", "<rPr><b/></rPr><t"):
        written = written.replace(f'<r>{run} xml:space="preserve">', f"[{len(run)}]").replace("</t></r>", "]")
    assert written == "<sst><si>[2]APPLES][2]_x000D_\n][17]RIPE][17]\n][17]PEARS]</si></sst>"


def test_other_files_are_refused() -> None:
    with pytest.raises(BadFile, match=r"is no XLSX: it has no xl/workbook.xml"):
        read_xlsx(archive({"word/document.xml": "<a/>"}))
