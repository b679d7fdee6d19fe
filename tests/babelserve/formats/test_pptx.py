import pytest

from babelserve.formats.document import HTML, BadFile
from babelserve.formats.pptx import read_pptx
from tests.babelserve.formats.files import PPTX, archive, members, translated
from tests.babelserve.scripted_server import upper

SLIDE, NOTES = "ppt/slides/slide1.xml", "ppt/notesSlides/notesSlide1.xml"


def test_a_paragraph_of_a_slide_is_one_text_with_its_formats_and_breaks() -> None:
    read = read_pptx(archive(PPTX))

    assert read.mime_type == HTML
    assert read.texts == ['One red <span id="1">car</span><br id="2">stops<code id="3"></code>', "A note"]


def test_a_field_is_a_word_of_a_sentence() -> None:
    field = "<a:r><a:t>Slide </a:t></a:r><a:fld><a:t>7</a:t></a:fld><a:r><a:t> shows it</a:t></a:r>"
    read = read_pptx(archive(PPTX | {SLIDE: f"<p:sld xmlns:a='a' xmlns:p='p'><a:p>{field}</a:p></p:sld>"}))

    assert read.texts[0] == 'Slide <code id="1"></code> shows it'


def test_runs_are_written_with_their_properties_and_all_else_stays() -> None:
    changed = members(translated(read_pptx(archive(PPTX)), upper))

    runs = "<a:r><a:rPr/><a:t>ONE RED </a:t></a:r>"
    runs += '<a:r><a:rPr b="1"/><a:t>CAR</a:t></a:r><a:br/><a:r><a:rPr/><a:t>STOPS</a:t></a:r>'
    assert f'<a:pPr lvl="1"/>{runs}<a:fld type="slidenum"><a:t>7</a:t></a:fld>' in changed[SLIDE].decode()
    assert b"<a:t>A NOTE</a:t>" in changed[NOTES]
    untouched = [name for name in PPTX if name not in (SLIDE, NOTES)]
    assert {name: changed[name] for name in untouched} == {name: members(archive(PPTX))[name] for name in untouched}


def test_texts_that_stay_leave_the_same_bytes() -> None:
    data = archive(PPTX)

    assert members(translated(read_pptx(data), lambda text: text)) == members(data)


def test_other_files_are_refused() -> None:
    with pytest.raises(BadFile, match=r"is no PPTX: it has no ppt/presentation.xml"):
        read_pptx(archive({"word/document.xml": "<a/>"}))
    with pytest.raises(BadFile, match="is XML that declares entities"):
        read_pptx(archive(PPTX | {SLIDE: '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}))
