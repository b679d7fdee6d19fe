from babelserve.formats.document import PLAIN
from babelserve.formats.plain import read_text
from tests.babelserve.formats.files import translated
from tests.babelserve.scripted_server import upper


def test_each_line_is_a_text_and_what_is_around_it_stays() -> None:
    data = b"\xef\xbb\xbfA title\r\n\r\n  Two words \n42\n\ta\rend"
    read = read_text(data)

    assert read.mime_type == PLAIN
    assert read.texts == ["A title", "Two words", "a", "end"]
    assert translated(read, upper) == b"\xef\xbb\xbfA TITLE\r\n\r\n  TWO WORDS \n42\n\tA\rEND"
    assert translated(read, lambda text: text) == data


def test_a_line_break_of_the_model_shifts_no_line() -> None:
    assert translated(read_text(b"a\nb"), lambda text: f"{text}\r\n{text}\n!") == b"a a !\nb b !"


def test_a_line_of_blanks_takes_linear_work() -> None:
    assert read_text(b"a" + b" " * 1_000_000 + b"\n").texts == ["a"]
