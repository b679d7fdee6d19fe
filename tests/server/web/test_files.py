import pytest

from server.errors import InvalidRequest
from server.web.bodies import File
from server.web.files import read_file


def test_a_file_has_a_name_and_a_content() -> None:
    assert read_file({"file": [File("a.txt", b"A")]}) == ("a.txt", b"A")
    assert read_file({"file": [File("file", b"A")], "filename": ["b.txt"]}) == ("b.txt", b"A")
    assert read_file({"file": [File("a.txt", b"A")], "filename": [File("b", b"")]}) == ("a.txt", b"A")
    assert read_file({"file": ["Ä"]}) == ("", "Ä".encode())


@pytest.mark.parametrize("values", [[], [1], [None], ["a", "b"], [[]]])
def test_anything_else_is_refused(values: list[object]) -> None:
    with pytest.raises(InvalidRequest, match=r"file: must be one file in a form of parts, not \d"):
        read_file({"file": values})
