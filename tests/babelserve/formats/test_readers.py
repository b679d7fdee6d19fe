from xml.etree import ElementTree as ET

import pytest

from babelserve.arguments import build_parser
from babelserve.formats.document import BadFile
from babelserve.formats.readers import READERS
from tests.babelserve.formats.files import EPUB, ODT, PPTX, XLSX, archive, members, word

FILES = {
    "text": (b"Hi", "text/plain"),
    "html": (b"<p>Hi", "text/html"),
    "markdown": (b"# Hi", "text/markdown"),
    "xliff": (b"<xliff>Hi</xliff>", "application/xliff+xml"),
    "po": (b'msgid "Hi"\nmsgstr ""', "text/plain"),
    "json": (b'"Hi"', "text/plain"),
    "srt": (b"0:01,0 --> 0:02,0\nHi", "text/html"),
    "vtt": (b"WEBVTT\n\n00:01.000 --> 00:02.000\nHi", "text/html"),
    "docx": (word("Hi"), "text/html"),
    "pptx": (archive(PPTX), "text/html"),
    "xlsx": (archive(XLSX), "text/html"),
    "odt": (archive(ODT), "text/html"),
    "epub": (archive(EPUB), "text/html"),
}


@pytest.mark.parametrize("name", READERS)
def test_every_format_is_read_and_refuses_what_is_no_text(name: str) -> None:
    data, mime_type = FILES[name]
    document = READERS[name](data)

    assert document.mime_type == mime_type
    assert document.texts
    assert build_parser().parse_args(["--format", name]).format == name
    with pytest.raises(BadFile):
        READERS[name](b"\xff\xfe\x00a")


@pytest.mark.parametrize(
    ("name", "part", "before"),
    [("docx", "word/document.xml", "w"), ("pptx", "ppt/slides/slide1.xml", "p"), ("odt", "content.xml", "office")],
)
def test_a_part_that_elementtree_has_saved_is_refused(name: str, part: str, before: str) -> None:
    files = members(FILES[name][0])
    saved = ET.tostring(ET.fromstring(files[part]))

    with pytest.raises(BadFile, match=rf"has <ns\d:\S+> where office programs write <{before}:\.\.\.>: save it anew"):
        READERS[name](archive({**files, part: saved}))


def test_a_long_name_of_a_part_s_root_is_shown_in_part() -> None:
    files = members(FILES["docx"][0])
    name = "x" * 1_000_000

    with pytest.raises(BadFile) as caught:
        READERS["docx"](archive({**files, "word/document.xml": f"<{name}></{name}>".encode()}))

    assert len(str(caught.value)) < 300
