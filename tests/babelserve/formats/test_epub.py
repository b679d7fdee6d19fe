import io
import zipfile

import pytest

from babelserve.formats.document import HTML, BadFile
from babelserve.formats.epub import read_epub
from tests.babelserve.formats.files import EPUB, archive, members, translated
from tests.babelserve.scripted_server import upper

CHAPTER = "OPS/text/a b.xhtml"


def test_chapters_and_contents_are_texts() -> None:
    read = read_epub(archive(EPUB))

    assert read.mime_type == HTML
    assert read.texts == [
        "One",
        'A <em id="1">very</em>&nbsp;red<br id="2">\ncar <code id="3"></code><wbr id="4"> here.',
        "Loose ",
        "text",
        "inside",
        "Chapter one",
    ]


def test_code_formulas_and_pictures_are_words_of_a_sentence() -> None:
    words = ["<code>open</code>", "<math/>", "<ruby>a<rt>b</rt></ruby>", '<b translate="no">Inc.</b>']
    others = ['<img src="a"/>', '<a id="page5"/>', "<script>x</script>", "<?x?>", "<svg><path/></svg>"]
    body = "".join(f"a {each} b " for each in words + others)
    read = read_epub(archive({**EPUB, CHAPTER: f"<html><body><p>{body}</p></body></html>"}))

    sent = ['<code id="{}"></code>'] * len(words) + ['<img id="{}">'] + ['<wbr id="{}">'] * (len(others) - 1)
    assert read.texts[0] == "".join(f"a {tag.format(number)} b " for number, tag in enumerate(sent, 1))


@pytest.mark.parametrize(
    ("paragraph", "sent"),
    [
        ("<code>open</code> reads a file.", '<code id="1"></code> reads a file.'),
        ("To stop, press <kbd>Q</kbd><img/>", 'To stop, press <code id="1"></code>'),
        ("<b><code>open</code></b> reads", '<b id="1"><code id="2"></code></b> reads'),
        ("<code>open</code>, <code>close</code>", "Chapter one"),
    ],
)
def test_code_at_the_ends_of_a_sentence_is_of_it(paragraph: str, sent: str) -> None:
    files = {**EPUB, CHAPTER: f"<html><body><p>{paragraph}</p></body></html>"}
    read = read_epub(archive(files))

    assert read.texts[0] == sent
    changed = members(translated(read, lambda text: text.replace("file", "book")))[CHAPTER].decode()
    assert changed == str(files[CHAPTER]).replace("file", "book")


def test_all_but_texts_and_languages_stays_byte_for_byte() -> None:
    data = archive(EPUB)
    read = read_epub(data)

    assert members(translated(read, lambda text: text, "en")) == members(data)
    written = translated(read, upper, "pt")
    changed = members(written)
    expected = str(EPUB[CHAPTER]).replace('"en"', '"pt"').replace("'en'", "'pt'").replace("&nbsp;", "\u00a0")
    for text in ("One", "very", "red", "car", " here.", "Loose ", "text<", "inside"):
        expected = expected.replace(text, text.upper())
    assert changed[CHAPTER].decode() == expected.replace("/1999/XHTML", "/1999/xhtml")
    assert changed["OPS/toc.ncx"].decode() == str(EPUB["OPS/toc.ncx"]).replace("Chapter one", "CHAPTER ONE")
    assert changed["OPS/book.opf"].decode() == str(EPUB["OPS/book.opf"]).replace(">en<", ">pt<")
    assert changed["OPS/a.css"].decode() == EPUB["OPS/a.css"]
    with zipfile.ZipFile(io.BytesIO(written)) as file:
        first = file.infolist()[0]
    assert (first.filename, first.compress_type, first.header_offset) == ("mimetype", zipfile.ZIP_STORED, 0)


@pytest.mark.parametrize(
    ("members_of_it", "message"),
    [
        ({"a": "b"}, "is no EPUB: it has no META-INF/container.xml that names its package"),
        ({**EPUB, CHAPTER: "<p>&nbsp;"}, "has OPS/text/a b.xhtml, which is no well-formed XML"),
    ],
)
def test_other_files_are_refused(members_of_it: dict[str, str], message: str) -> None:
    with pytest.raises(BadFile, match=message):
        read_epub(archive(members_of_it))
