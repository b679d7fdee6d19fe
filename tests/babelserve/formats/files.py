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
