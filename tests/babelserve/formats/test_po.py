import time

import polib
import pytest

from babelserve.formats.document import BadFile
from babelserve.formats.po import read_po
from tests.babelserve.formats.files import translated

HEADER = r"""# A comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: \n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

"""
FILE = (
    HEADER
    + r"""#. extracted
#: main.c:3
#, c-format
msgctxt "menu"
msgid "Open \"%s\""
msgstr   ""

msgid ""
"Two\n"
"lines\n"
msgstr ""

#, fuzzy
#| msgid "Older"
msgid "Old"
msgstr "Alt"
#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "99"
msgstr ""

#~ msgid "Gone"
#~ msgstr ""
"""
)


def test_entries_without_a_translation_get_one() -> None:
    document = read_po(FILE.encode())

    assert document.texts == ['Open "%s"', "Two\nlines\n", "%d file", "%d files"]
    written = translated(document, lambda text: text.replace("e", "\té"), "pt-BR")

    entries = polib.pofile(written.decode())
    assert entries.metadata["Language"] == "pt_BR"
    assert [entry.msgstr for entry in entries] == ['Op\tén "%s"', "Two\nlin\tés\n", "Alt", "", "", ""]
    assert entries[3].msgstr_plural == {0: "%d fil\té", 1: "%d fil\tés"}
    assert entries[2].flags == ["fuzzy"]


def test_everything_but_the_new_strings_stays_byte_for_byte() -> None:
    for source in (FILE, FILE.replace("\n", "\r\n"), "\ufeff" + FILE):
        document = read_po(source.encode())

        assert document.write([None] * len(document.texts), "")[0].decode() == source
        same = translated(document, lambda text: text, "").decode()
        newline = "\r\n" if "\r" in source else "\n"
        expected = source.replace('msgstr   ""', r'msgstr   "Open \"%s\""').replace('[0] ""', '[0] "%d file"')
        two = newline.join(['""', r'"Two\n"', r'"lines\n"'])
        expected = expected.replace(f'{two}{newline}msgstr ""', f"{two}{newline}msgstr {two}")
        assert same == expected.replace('[1] ""', '[1] "%d files"')


def test_the_only_form_of_a_language_without_a_plural_is_the_plural() -> None:
    entry = HEADER + 'msgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] "{}"\n'
    document = read_po(entry.format("").encode())

    assert document.texts == ["%d files"]
    assert translated(document, lambda text: text, "").decode() == entry.format("%d files")


@pytest.mark.parametrize("charset", ["CHARSET", "us-ascii"])
def test_the_header_says_that_the_file_is_utf_8(charset: str) -> None:
    source = HEADER.replace("UTF-8", charset) + 'msgid "a"\nmsgstr ""\n'

    written = read_po(source.encode()).write(["\u00e4"], "")[0].decode()
    assert written == HEADER + 'msgid "a"\nmsgstr "\u00e4"\n'


def test_escapes_by_number_are_bytes_and_controls_are_written_as_such() -> None:
    source = HEADER + r'msgid "\033[1m\x41\1012\t\303\xA4\\101\377"' + "\nmsgstr {}\n"
    document = read_po(source.format('""').encode())

    assert document.texts == ["\x1b[1mAA2\t\u00e4\\101\ufffd"]
    written = translated(document, str.lower, "").decode()
    assert written == source.format(
        r'"\033[1maa2\t\u00e4\\101\ufffd"'.replace(r"\u00e4", "\u00e4").replace(r"\ufffd", "\ufffd")
    )


def test_long_lines_take_time_in_proportion() -> None:
    assert read_po(b'msgid "' + b"a" * 1_000_000 + b'"\nmsgstr ""\n').texts == ["a" * 1_000_000]
    started = time.process_time()
    assert len(read_po(b'msgid ""\n' + (b'"' + b"a" * 999 + b'"\n') * 20_000 + b'msgstr ""\n').texts[0]) == 19_980_000
    assert time.process_time() - started < 5, "seconds, and it takes a fifth of one"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello\n", "is no PO file: line 1 belongs to no entry"),
        (b'msgid "a\nmsgstr ""\n', "is no PO file: line 1 belongs"),
        (b'\n"lost"\n', "is no PO file: line 2 belongs"),
        (FILE.replace("UTF-8", "ISO-8859-1").encode(), "has the encoding ISO-8859-1; it must be UTF-8"),
        (b'msgid "\xe4"\n', "is not UTF-8"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadFile, match=message):
        read_po(data)


def test_shortcuts_of_labels_are_not_sent_and_stand_before_the_first_word() -> None:
    entries = ["_File", "Save _As\\u2026", "Save", "R&D", "the max_size", "%d _file"]
    source = HEADER + "\n".join(f'msgid "{entry}"\nmsgstr ""\n' for entry in entries).encode().decode("unicode_escape")
    document = read_po(source.encode())

    assert document.texts == ["File", "Save As\u2026", "Save", "R&D", "the max_size", "%d file"]
    texts = ["Datei", "Speichern unter\u2026", "Save", "F&E", "die max_size", "%d Datei"]
    written = polib.pofile(document.write(texts, "de")[0].decode())
    assert [entry.msgstr for entry in written] == [
        "_Datei", "_Speichern unter\u2026", "Save", "F&E", "die max_size", "%d _Datei"
    ]  # fmt: skip
    same = polib.pofile(document.write(document.texts, "de")[0].decode())
    assert [entry.msgstr for entry in same] == [entry.msgid for entry in same]
