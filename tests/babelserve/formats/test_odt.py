import pytest

from babelserve.formats.document import HTML, BadFile
from babelserve.formats.odt import read_odt
from tests.babelserve.formats.files import ODT, archive, members, translated
from tests.babelserve.scripted_server import upper


def test_paragraphs_headings_notes_frames_and_headers_are_texts() -> None:
    read = read_odt(archive(ODT))

    assert read.mime_type == HTML
    assert read.texts == [
        "A title",
        'One <span id="1">red &amp; blue</span> car<wbr id="2"> stops.<br id="3">End',
        "A note.",
        "In a box",
        "Header",
    ]


def test_fields_are_words_of_a_sentence() -> None:
    body = "<text:p>on <text:date>May 1</text:date> at<text:s/> <text:bookmark-ref>7</text:bookmark-ref>.</text:p>"
    read = read_odt(archive({"content.xml": f"<office:text xmlns:office='o' xmlns:text='t'>{body}</office:text>"}))

    assert read.texts == ['on <code id="1"></code> at<wbr id="2"> <code id="3"></code>.']


def test_all_but_the_texts_stays_byte_for_byte() -> None:
    data = archive(ODT)
    read = read_odt(data)
    changed = members(translated(read, upper))

    assert members(translated(read, lambda text: text)) == members(data)
    assert list(changed) == list(ODT)
    expected = str(ODT["content.xml"])
    for text in ("A title", "One ", "red", "blue", " car", " stops.", "End", "A note.", "In a box"):
        expected = expected.replace(text, text.upper())
    assert changed["content.xml"].decode() == expected
    assert changed["Pictures/a.png"] == ODT["Pictures/a.png"]
    assert b"HEADER" in changed["styles.xml"]


def test_a_translation_may_move_the_tags() -> None:
    read = read_odt(archive(ODT))
    texts: list[str | None] = [None] * len(read.texts)
    texts[1] = '<wbr id="2"><span id="1">Rot</span> hält<br id="3"/>Ende'

    written = members(read.write(texts, "de")[0])["content.xml"].decode()

    note = "<text:note><text:note-body><text:p>A note.</text:p></text:note-body></text:note>"
    assert f'{note}<text:span text:style-name="T1">Rot</text:span> hält<text:line-break/>Ende</text:p>' in written


def test_paragraphs_within_each_other_are_all_translated() -> None:
    nested = "<office:text xmlns:office='o' xmlns:text='t'>" + "<text:p>a" * 99 + "b</text:p>" * 99 + "</office:text>"
    written = members(translated(read_odt(archive({"content.xml": nested})), upper))["content.xml"].decode()

    assert written == nested.replace(">a", ">A").replace(">b", ">B").replace("ab<", "AB<").replace("Ab<", "AB<")


def test_other_files_are_refused() -> None:
    with pytest.raises(BadFile, match=r"is no ODT: it has no content.xml"):
        read_odt(archive({"mimetype": "x"}))
    with pytest.raises(BadFile, match="is encrypted"):
        read_odt(archive(ODT | {"META-INF/manifest.xml": "<m><encryption-data/></m>"}))
    with pytest.raises(BadFile, match="is XML that declares entities"):
        read_odt(archive({"content.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}))
