"""Small files of each format, and what a test does to them."""

import io
import zipfile
from collections.abc import Callable, Mapping

import docx

from babelserve.formats.document import Document

STAMP = (2020, 2, 3, 4, 5, 6)


def translated(document: Document, change: Callable[[str], str], target: str = "de") -> bytes:
    """Writes a document with each text changed, and checks that all have fitted."""
    output, unfit = document.write([change(text) for text in document.texts], target)
    assert unfit == []
    return output


def archive(members: Mapping[str, str | bytes], *, stored: tuple[str, ...] = ("mimetype",)) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, STAMP)
            info.compress_type = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            file.writestr(info, content)
    return out.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


def word(*paragraphs: str) -> bytes:
    """A document of Word, as python-docx makes it, with paragraphs of one run each."""
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


ODT: dict[str, str | bytes] = {
    "mimetype": "application/vnd.oasis.opendocument.text",
    "Pictures/a.png": b"\x89PNG no picture",
    "content.xml": """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="o" xmlns:text="t" xmlns:draw="d" xmlns:dc="c"><office:body><office:text>
<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>
<text:h text:outline-level="1">A title</text:h>
<text:p text:style-name="P1">One <text:span text:style-name="T1">red &amp; blue</text:span> car<text:note>\
<text:note-body><text:p>A note.</text:p></text:note-body></text:note> stops.<text:line-break/>End</text:p>
<text:p><draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box></draw:frame></text:p>
<text:p>42</text:p></office:text></office:body></office:document-content>""",
    "styles.xml": '<office:styles xmlns:office="o" xmlns:text="t"><text:p>Header</text:p></office:styles>',
}

EPUB: dict[str, str | bytes] = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
    "OPS/book.opf": """<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Book</dc:title>\
<dc:language>en</dc:language></metadata><manifest>
<item id="a" href="text/a%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="c" href="a.css" media-type="text/css"/></manifest></package>""",
    "OPS/a.css": "p { color: red }",
    "OPS/toc.ncx": "<ncx><navPoint><navLabel><text>Chapter one</text></navLabel></navPoint></ncx>",
    "OPS/text/a b.xhtml": """<?xml version='1.0' encoding='utf-8'?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN"
 "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd" [ <!-- ]> --> ]>
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang='en'><head><title>One</title><script src="x"/></head>
<body><p class="x">A <em class="y">very</em>&nbsp;red<br/>
car <code>x = 1</code><!-- no <p> --> here.</p><div>Loose <b>text<p>inside</p></b></div>
<pre>code</pre><p translate="no">Kept</p></body></html>""",
}

PPTX: dict[str, str | bytes] = {
    "[Content_Types].xml": "<Types/>",
    "ppt/presentation.xml": "<p:presentation xmlns:p='p'/>",
    "ppt/vbaProject.bin": b"a macro",
    "ppt/slides/_rels/slide1.xml.rels": '<Relationships><Relationship Target="file:///etc/passwd"/></Relationships>',
    "ppt/slides/slide1.xml": """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<p:sld xmlns:a="a" xmlns:p="p"><p:txBody><a:bodyPr/><a:p><a:pPr lvl="1"/>\
<a:r><a:rPr lang="en-US" dirty="0"/><a:t>One re</a:t></a:r><a:r><a:rPr lang="de-DE"/><a:t>d </a:t></a:r>\
<a:r><a:rPr lang="en-US" b="1"/><a:t>car</a:t></a:r><a:br/><a:r><a:rPr/><a:t>stops</a:t></a:r>\
<a:fld type="slidenum"><a:t>7</a:t></a:fld><a:endParaRPr/></a:p><a:p><a:endParaRPr/></a:p></p:txBody></p:sld>""",
    "ppt/notesSlides/notesSlide1.xml": "<p:n xmlns:a='a' xmlns:p='p'><a:p><a:r><a:t>A note</a:t></a:r></a:p></p:n>",
    "ppt/slideMasters/slideMaster1.xml": "<m xmlns:a='a'><a:p><a:r><a:t>Click to edit</a:t></a:r></a:p></m>",
}

XLSX: dict[str, str | bytes] = {
    "xl/workbook.xml": "<workbook/>",
    "xl/tables/table1.xml": '<table><tableColumns><tableColumn id="1" name="Price &amp; tax"/></tableColumns></table>',
    "xl/sharedStrings.xml": """<sst><si><t>Price &amp; tax</t></si><si><t>A dog</t><phoneticPr fontId="1"/></si>\
<si><r><t xml:space="preserve">A </t></r><r><rPr><b/></rPr><t>red</t></r><r><t xml:space="preserve"> car</t></r></si>\
<si><t>tab_x0009_</t></si><si><t>42</t></si></sst>""",
    "xl/worksheets/sheet1.xml": """<worksheet><sheetData><row><c t="s"><v>1</v></c>\
<c t="str"><f>A1&amp;"x"</f><v>word</v></c><c t="inlineStr"><is><t>Inline</t></is></c></row></sheetData></worksheet>""",
}
