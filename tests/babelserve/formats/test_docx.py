import io
import time

import docx
import pytest
from docx.enum.text import WD_BREAK

from babelserve.formats.document import HTML, BadFile
from babelserve.formats.docx import read_docx
from tests.babelserve.formats.files import archive, members, translated, word
from tests.babelserve.scripted_server import upper

OPENING = '<w:document xmlns:w="w" xmlns:r="r"><w:body>'
CLOSING = "</w:body></w:document>"


def of_body(body: str) -> bytes:
    return archive({"[Content_Types].xml": "<Types/>", "word/document.xml": OPENING + body + CLOSING})


def body(data: bytes) -> str:
    return members(data)["word/document.xml"].decode().removeprefix(OPENING).removesuffix(CLOSING)


def test_a_document_of_a_library_is_translated_and_read_by_it_again() -> None:
    document = docx.Document()
    document.add_heading("A title")
    paragraph = document.add_paragraph("A ")
    paragraph.add_run("red").bold = True
    paragraph.add_run(" car & more")
    paragraph.add_run().add_break(WD_BREAK.LINE)
    paragraph.add_run("stops")
    document.add_table(1, 1).cell(0, 0).text = "In a cell"
    document.sections[0].header.paragraphs[0].text = "Header"
    out = io.BytesIO()
    document.save(out)

    read = read_docx(out.getvalue())
    again = docx.Document(io.BytesIO(translated(read, upper)))

    assert read.mime_type == HTML
    assert 'A <span id="1">red</span> car &amp; more<br id="2">stops' in read.texts
    assert [each.text for each in again.paragraphs] == ["A TITLE", "A RED CAR & MORE\nSTOPS"]
    assert [each.text for each in again.paragraphs[1].runs if each.bold] == ["RED"]
    assert again.tables[0].cell(0, 0).text == "IN A CELL"
    assert again.sections[0].header.paragraphs[0].text == "HEADER"


def test_texts_that_stay_leave_the_same_bytes() -> None:
    data = word("One", "Two & three", "")
    read = read_docx(data)

    assert len(read.texts) == 2
    assert members(translated(read, lambda text: text)) == members(data)
    changed = members(translated(read, upper))
    assert {name for name, part in members(data).items() if changed[name] != part} == {"word/document.xml"}


def run(text: str, properties: str = "") -> str:
    """A run as it is written."""
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def field_char(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


UNDERLINED = "<w:rPr><w:u/></w:rPr>"
LINK = '<w:hyperlink r:id="x">{}</w:hyperlink>'
DATE = f"{field_char('begin')}<w:r><w:instrText>DATE</w:instrText></w:r>{field_char('separate')}"
DATE += f"<w:r><w:tab/><w:t>May 1</w:t></w:r>{field_char('end')}"
CONTROL = "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>"
BOX = "<w:r><w:pict><w:p>{}</w:p></w:pict></w:r>"
PAGE = f"<w:fldSimple>{run('7')}</w:fldSimple>"
FORMULA = '<m:oMath xmlns:m="m"><m:r><m:t>x</m:t></m:r></m:oMath>'
ENTRY = f"{field_char('begin')}<w:r><w:instrText>XE</w:instrText></w:r>{field_char('end')}"
WRAPPERS = (
    '<w:customXml w:element="x"><w:customXmlPr/>{}</w:customXml><w:smartTag><w:smartTagPr/>{}</w:smartTag>'
    '<w:dir w:val="ltr">{}</w:dir><w:bdo w:val="ltr">{}</w:bdo>'
)
CASES = {
    "split by the spelling checker and by sessions of editing": (
        '<w:r w:rsidR="1"><w:t>Ca</w:t></w:r><w:proofErr w:type="x"/><w:r w:rsidR="2"><w:t>rs</w:t></w:r>',
        "Cars",
        run("CARS"),
    ),
    "a link": (
        LINK.format(f"<w:r>{UNDERLINED}<w:t>link</w:t></w:r>") + "<w:r><w:t> end</w:t></w:r>",
        '<span id="1">link</span> end',
        LINK.format(run("LINK", UNDERLINED)) + run(" END"),
    ),
    "a field stays": (
        run("on ") + DATE + run(" here"),
        'on <code id="1"></code> here',
        run("ON ") + DATE + run(" HERE"),
    ),
    "fields at the ends": (
        PAGE + run(" of ") + DATE + ENTRY,
        '<code id="1"></code> of <code id="2"></code>',
        PAGE + run(" OF ") + DATE + ENTRY,
    ),
    "a simple field, a formula, and an entry of an index": (
        run("p. ") + PAGE + run(" and ") + FORMULA + run(" or") + ENTRY + run(" more"),
        'p. <code id="1"></code> and <code id="2"></code> or<wbr id="3"> more',
        run("P. ") + PAGE + run(" AND ") + FORMULA + run(" OR") + ENTRY + run(" MORE"),
    ),
    "a field that ends elsewhere": (field_char("begin") + run("item"), "item", field_char("begin") + run("ITEM")),
    "a control": (CONTROL.format(run("it")), '<span id="1">it</span>', CONTROL.format(run("IT"))),
    "what is around runs": (
        WRAPPERS.format(*map(run, "abcd")),
        '<span id="1">a</span><span id="2">b</span><span id="3">c</span><span id="4">d</span>',
        WRAPPERS.format(*map(run, "ABCD")),
    ),
    "hyphens of a run": (
        "<w:r><w:t>uni</w:t><w:softHyphen/><w:t>versity</w:t><w:noBreakHyphen/><w:t>wide</w:t></w:r>",
        "university\u2011wide",
        run("UNIVERSITY\u2011WIDE"),
    ),
    "a text box in a run": (
        run("out") + BOX.format(run("in")) + run("end"),
        'out<wbr id="1">end',
        run("OUT") + BOX.format(run("IN")) + run("END"),
    ),
}


@pytest.mark.parametrize(("source", "text", "written"), CASES.values(), ids=CASES)
def test_a_paragraph_is_sent_as_one_text_and_written_with_its_own_tags(source: str, text: str, written: str) -> None:
    read = read_docx(of_body(f"<w:p><w:pPr/>{source}</w:p>"))

    assert read.texts[0] == text
    assert body(translated(read, upper)) == f"<w:p><w:pPr/>{written}</w:p>"


def test_fields_within_each_other_are_read_once() -> None:
    depth = 20_000
    body = run("a") + field_char("begin") * depth + "{}" + field_char("end") * depth + run("b")
    started = time.process_time()

    assert read_docx(of_body(f"<w:p>{body.format('')}</w:p>")).texts == ['a<wbr id="1">b']
    assert read_docx(of_body(f"<w:p>{body.format(run('7'))}</w:p>")).texts == ['a<code id="1"></code>b']
    assert time.process_time() - started < 10, "seconds, and it takes one"


def test_deleted_text_and_formulas_are_not_translated() -> None:
    deleted = "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
    formula = "<w:p><w:oMath><w:mr><w:mt>x</w:mt></w:mr></w:oMath></w:p>"

    assert read_docx(of_body(deleted + formula)).texts == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive({"content.xml": "<a/>"}), "is no DOCX: it has no word/document.xml"),
        (b"hello", "is no ZIP archive"),
        (of_body("<w:p>"), "is no well-formed XML"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadFile, match=message):
        read_docx(data)
