"""A small file of each kind that the page takes: each says "A dog runs."."""

from pathlib import Path

from tests.babelserve.formats.files import archive, word

SENTENCE = "A dog runs."
_CUE = f"00:00:01.000 --> 00:00:02.000\n{SENTENCE}\n"
_PO = f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "{SENTENCE}"\nmsgstr ""\n'
_XLIFF = (
    '<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a"'
    ' source-language="en" target-language="de" datatype="plaintext"><body><trans-unit id="1">'
    f"<source>{SENTENCE}</source></trans-unit></body></file></xliff>"
)
_XHTML = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><p>{SENTENCE}</p></body></html>'
_BOOK = (
    '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:language>en</dc:language></metadata><manifest>'
    '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest></package>'
)
_TEXTS = {
    "txt": f"{SENTENCE}\n",
    "html": f"<p>{SENTENCE}</p>",
    "htm": f"<p>{SENTENCE}</p>",
    "md": f"# {SENTENCE}\n",
    "srt": f"1\n{_CUE.replace('.000', ',000')}",
    "vtt": f"WEBVTT\n\n{_CUE}",
    "po": _PO,
    "pot": _PO,
    "xlf": _XLIFF,
    "xliff": _XLIFF,
    "json": f'{{"a": "{SENTENCE}"}}',
}


def files_by_kind() -> dict[str, bytes]:
    """Returns the files, each by the end of its name."""
    paragraph = f"<a:p><a:r><a:t>{SENTENCE}</a:t></a:r></a:p>"
    return {kind: text.encode() for kind, text in _TEXTS.items()} | {
        "docx": word(SENTENCE),
        "pptx": archive(
            {
                "[Content_Types].xml": "<Types/>",
                "ppt/presentation.xml": "<p:presentation xmlns:p='p'/>",
                "ppt/slides/slide1.xml": f'<p:sld xmlns:a="a" xmlns:p="p"><p:txBody>{paragraph}</p:txBody></p:sld>',
            }
        ),
        "xlsx": archive(
            {
                "xl/workbook.xml": "<workbook/>",
                "xl/sharedStrings.xml": f"<sst><si><t>{SENTENCE}</t></si></sst>",
                "xl/worksheets/sheet1.xml": '<worksheet><sheetData><row><c t="s"><v>0</v></c></row></sheetData>'
                "</worksheet>",
            }
        ),
        "odt": archive(
            {
                "mimetype": "application/vnd.oasis.opendocument.text",
                "content.xml": '<office:document-content xmlns:office="o" xmlns:text="t"><office:body><office:text>'
                f"<text:p>{SENTENCE}</text:p></office:text></office:body></office:document-content>",
            }
        ),
        "epub": archive(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
                "b.opf": _BOOK,
                "a.xhtml": _XHTML,
            }
        ),
    }


def write_files(folder: Path) -> None:
    """Writes them into a folder as `dog.txt` and so on."""
    for kind, data in files_by_kind().items():
        (folder / f"dog.{kind}").write_bytes(data)
