import pytest

from babelserve.formats.readers import READERS
from server.documents.formats import FORMATS, UnknownFormat, extension_of, plain_name
from tests.babelserve.formats.files import EPUB, ODT, PPTX, XLSX, archive, word


def test_every_format_has_a_reader_and_every_reader_a_format() -> None:
    assert {each.name for each in FORMATS.values()} == set(READERS)


@pytest.mark.parametrize(
    ("name", "data", "extension"),
    [
        ("Report.DOCX", b"", "docx"),
        ("a.tar.htm", b"", "htm"),
        ("file", b"Hello", "txt"),
        ("", b"\xef\xbb\xbf\n<!DOCTYPE html><p>", "html"),
        ("blob", b"WEBVTT\n", "vtt"),
        ("blob", b"<?xml version='1.0'?><xliff>", "xliff"),
        ("file", word("Hi"), "docx"),
        ("file", archive(PPTX), "pptx"),
        ("file", archive(XLSX), "xlsx"),
        ("file", archive(ODT), "odt"),
        ("file", archive(EPUB), "epub"),
    ],
)
def test_the_end_of_a_name_decides_or_else_how_the_file_begins(name: str, data: bytes, extension: str) -> None:
    assert extension_of(name, data) == extension


@pytest.mark.parametrize(("name", "data"), [("a.pdf", b"%PDF"), ("a.docm", b"PK"), ("file", archive({"a": "b"}))])
def test_other_files_are_refused_by_the_names_that_are_served(name: str, data: bytes) -> None:
    with pytest.raises(UnknownFormat, match="file: must have a name that ends in one of txt, html, htm, docx"):
        extension_of(name, data)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("../../etc/pass\r\nwd.txt", "passwd.txt"),
        ("C:\\a\\b.txt", "b.txt"),
        ("..", "document.txt"),
        ("", "document.txt"),
        ("Übersicht 1.0.txt", "Übersicht 1.0.txt"),
        ("x" * 999, "x" * 200 + ".txt"),
    ],
)
def test_a_name_has_no_folders_and_no_controls(name: str, plain: str) -> None:
    assert plain_name(name, "txt") == plain
