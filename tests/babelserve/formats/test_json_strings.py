import json

import pytest

from babelserve.formats.document import BadFile
from babelserve.formats.json_strings import read_json
from tests.babelserve.formats.files import translated
from tests.babelserve.scripted_server import upper

FILE = """\ufeff{"name" : "A \\"red\\" car",\t"n": 1.50e3,
  "list": ["one\\ntwo", null, "", "42", "a/b", "c\\/d"],
  "list": {"\\u00e4": "\\ud83d\\ude00 é", "lone": "a \\ud800"}\r
}
"""


def test_string_values_are_translated_and_all_else_stays() -> None:
    document = read_json(FILE.encode())

    assert document.texts == ['A "red" car', "one\ntwo", "a/b", "c/d", "😀 é"]
    assert translated(document, lambda text: text) == FILE.encode()
    expected = (
        FILE.replace('A \\"red\\" car', 'A \\"RED\\" CAR')
        .replace("one\\ntwo", "ONE\\nTWO")
        .replace("a/b", "A/B")
        .replace("c\\/d", "C\\/D")
        .replace("\\ud83d\\ude00 é", "😀 É")
    )
    assert translated(document, str.upper) == expected.encode()


def test_a_file_in_ascii_with_escapes_stays_one() -> None:
    assert translated(read_json(b'["\\u00e4", "b"]'), upper) == b'["\\u00c4", "B"]'
    assert translated(read_json(b'["b"]'), lambda text: "ä") == '["ä"]'.encode()


def test_texts_of_any_json_value_and_large_numbers_are_read() -> None:
    assert read_json(b'"text"').texts == ["text"]
    assert read_json(b"[" + b"1" * 10_000 + b"]").texts == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{'a': 1}", "is no JSON: Expecting property name"),
        (b"", "is no JSON"),
        (b"[" * 200_000, "is nested too deep"),
        (b'"' + b"\\" * 300_001, "is no JSON"),
        ('["ä"]'.encode("utf-16"), "is not UTF-8"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadFile, match=message):
        read_json(data)


def test_what_is_written_is_json_with_the_translations() -> None:
    wild = 'a "quoted" \\ line\n\t\x01\u2028 é'

    assert json.loads(translated(read_json(b'{"k": "v"}'), lambda text: wild)) == {"k": wild}
