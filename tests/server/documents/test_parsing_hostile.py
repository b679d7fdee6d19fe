"""Hostile documents: each is refused in words that say why, or bounded, by a real process."""

import io
import struct
import zipfile

import pytest

from server.documents.child import MAX_TEXTS
from server.documents.parsing import BadDocument, Parser
from tests.babelserve.formats.files import EPUB, ODT, PPTX, XLSX, archive, members, word
from tests.server.documents.test_parsing import opened

W = '<w:document xmlns:w="w"><w:body>{}</w:body></w:document>'
PARAGRAPH = "<w:p><w:r><w:t>A page</w:t></w:r><w:r><w:br w:type='page'/></w:r></w:p>"
MILLION = 1_000_000


def docx(document: str | bytes) -> bytes:
    return archive({"[Content_Types].xml": "<Types/>", "word/document.xml": document})


def lying() -> bytes:
    size = 64 * MILLION
    return docx(b" " * size).replace(struct.pack("<L", size), struct.pack("<L", 1000))


def overlapping() -> bytes:
    """Many members that are one: a small archive with terabytes in it."""
    data = archive({"[Content_Types].xml": b" " * MILLION, "word/document.xml": "<a/>"})
    place = data.rindex(b"PK\1\2") + 42
    return data[:place] + struct.pack("<L", 0) + data[place + 4 :]


def encrypted() -> bytes:
    data = bytearray(docx("<a/>"))
    data[data.rindex(b"PK\1\2") + 8] |= 1
    return bytes(data)


def packed_oddly() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("word/document.xml", " " * MILLION)
    return out.getvalue()


LAUGHS = "<!DOCTYPE a [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "a bomb": ("docx", docx(b" " * (33 << 20)), "bytes of text when it is unpacked; the limit is"),
    "a bomb of many members": (
        "pptx",
        archive(PPTX | {f"ppt/slides/slide{n}.xml": b" " * MILLION for n in range(2, 40)}),
        "bytes of text when it is unpacked; the limit is",
    ),
    "a bomb that lies": ("docx", lying(), "is damaged: Bad CRC"),
    "a bomb of members in one place": ("docx", overlapping(), "has two members in one place"),
    "a bomb packed oddly": ("docx", packed_oddly(), "packed by method 14, which is not supported"),
    "entities in each other": ("docx", docx(f"{LAUGHS}]><a>&i;</a>"), "is XML that declares entities"),
    "an entity that is a file": (
        "odt",
        archive(ODT | {"content.xml": "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>"}),
        "is XML that declares entities",
    ),
    "elements in each other": (
        "xlsx",
        archive(XLSX | {"xl/sharedStrings.xml": "<a>" * 99_999}),
        "nested more than 100",
    ),
    "lists in each other": ("json", b"[" * 99_999, "is nested too deep"),
    "too many pages": (
        "docx",
        docx(W.format(PARAGRAPH * (MAX_TEXTS + 1))),
        f"has {MAX_TEXTS + 1} texts with .* limits are {MAX_TEXTS}",
    ),
    "millions of tags": ("docx", docx(W.format("<a/>" * 2_000_000)), "is XML with more than 2000000 tags"),
    "a chapter out of the archive": (
        "epub",
        archive(EPUB | {"META-INF/container.xml": '<c><rootfile full-path="../../../etc/passwd"/></c>'}),
        "",
    ),
    "a truncated file": ("docx", word("Hello")[:-40], "is no ZIP archive, or a damaged one"),
    "a picture": ("docx", b"\x89PNG\r\n\x1a\n" + bytes(100), "is no ZIP archive"),
    "another format's archive": ("xlsx", word("Hello"), "is no XLSX"),
    "bytes that are no text": ("text", b"\xff\xfe\x00", "is not UTF-8: byte 0 is wrong"),
    "an encrypted archive": ("docx", encrypted(), "is encrypted"),
    "an encrypted document of Office": ("docx", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(999), "is encrypted, or of"),
    "an empty file": ("docx", b"", "is no ZIP archive"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_document_is_refused_and_says_why(name: str) -> None:
    format_name, data, why = HOSTILE[name]
    assert len(data) < 1 << 20

    with opened(data) as source:
        if not why:  # it has no chapters that are there
            assert (await Parser(1).read(format_name, source)).texts == []
            return
        with pytest.raises(BadDocument, match=f"file: cannot be translated: it .*{why}"):
            await Parser(1).read(format_name, source)


async def test_macros_and_links_to_files_stay_as_they_are_and_are_not_followed() -> None:
    with opened(archive(PPTX)) as source:
        parsed = await Parser(1).read("pptx", source)
        written, _ = await Parser(1).write("pptx", source, [text.upper() for text in parsed.texts], "de")
        with written:
            written.seek(0)
            found = members(written.read())

    assert "root:" not in "".join(parsed.texts)
    for name in ("ppt/vbaProject.bin", "ppt/slides/_rels/slide1.xml.rels"):
        assert found[name] == members(archive(PPTX))[name]


async def test_65_000_members_are_looked_through() -> None:
    data = archive({"word/document.xml": W.format(PARAGRAPH)} | {f"m{n}": "" for n in range(65_000)})

    with opened(data) as source:
        assert (await Parser(1).read("docx", source)).texts == ["A page"]
