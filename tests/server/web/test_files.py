import io

import pytest
from starlette.datastructures import UploadFile

from server.errors import InvalidRequest
from server.web.files import close_files, read_file


def uploaded(name: str | None, data: bytes) -> UploadFile:
    return UploadFile(io.BytesIO(data), filename=name)


async def test_a_file_has_a_name_and_a_content() -> None:
    file = uploaded("a.txt", b"A")

    assert await read_file({"file": [file]}) == ("a.txt", b"A")
    assert file.file.closed
    assert await read_file({"file": [uploaded("file", b"A")], "filename": ["b.txt"]}) == ("b.txt", b"A")
    assert await read_file({"file": ["Ä"]}) == ("", "Ä".encode())


@pytest.mark.parametrize("values", [[], [1], [None], ["a", "b"], [[]]])
async def test_anything_else_is_refused(values: list[object]) -> None:
    with pytest.raises(InvalidRequest, match=r"file: must be one file in a form of parts, not \d"):
        await read_file({"file": values})


async def test_files_that_nobody_has_read_are_closed() -> None:
    file = uploaded("a.txt", b"A")
    await close_files({"other": ["text", file]})

    assert file.file.closed
