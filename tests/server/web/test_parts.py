"""Forms of parts: what they mean, and that hostile ones keep nobody waiting."""

import pytest
from starlette.requests import Request

from server.errors import InvalidRequest
from server.web.parts import MAX_FIELDS, File, read_parts

PARTS = (
    b'--x\r\ncontent-disposition: form-data; name="q"\r\n\r\na b\r\n'
    b'--x\r\ncontent-disposition: form-data; name="source"\r\n\r\nen\r\n--x--\r\n'
)


async def parts(body: bytes, parameters: str = "boundary=x") -> dict[str, list[File | str]]:
    """Reads a form of parts."""
    headers = [(b"content-type", f"multipart/form-data; {parameters}".encode())]
    return await read_parts(Request({"type": "http", "method": "POST", "headers": headers}), body, 8 << 20)


@pytest.mark.parametrize("charset", ["utf-8", "UTF8", '"utf-8"', "iso-8859-1", "us-ascii"])
async def test_a_form_may_say_its_charset(charset: str) -> None:
    assert (await parts(PARTS, f"boundary=x; charset={charset}"))["q"]


@pytest.mark.parametrize("parameter", ["charset=punycode", "Charset=idna", "charset=undefined", "charset*=utf-8''idna"])
async def test_a_form_in_another_charset_is_refused(parameter: str) -> None:
    slow = PARTS.replace(b"a b", b"b-" + b"a" * 1_000_000)

    with pytest.raises(InvalidRequest, match="body: must be a form in UTF-8 or ISO-8859-1"):
        await parts(slow, f"boundary=x; {parameter}")


async def test_a_file_of_a_form_has_its_name_and_its_content() -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    fields = await parts(head + b"\x00\r\n--x--\r\n")

    assert fields == {"file": [File("a.txt", b"\x00")]}


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        (b"--x\r\na: b\r\n--x--: c\r\n\r\nd\r\n--x" + b" " * 1_000_000, "8 blanks in a row"),
        (b"--x" + b" " * 1_000_000, "8 blanks in a row"),
        (b"--x" + b"\t " * 500_000 + b"\r\n", "8 blanks in a row"),
        (b"--x\r\na:" + b" " * 4000 + b"x\r\n\r\n", "8 blanks in a row"),
        (b'--x\r\ncontent-disposition: form-data; name="' + b";" * 900 + b'"\r\n\r\n', "16 semicolons"),
        (b"--x\r\na:" + b"b" * 4000 + b"\r\n\r\n", "at most 1024 bytes"),
        (b"--xy\r\n" * 100_000, "at most 4112 parts"),
        (b"--x\ra\r\n" * 100_000, "at most 4112 parts"),
    ],
    ids=[
        "behind a last boundary in a head",
        "blanks",
        "tabs",
        "blanks in a head",
        "semicolons",
        "a long head",
        "false boundaries",
        "half line ends",
    ],
)
async def test_what_only_looks_like_boundaries_is_refused(tail: bytes, words: str) -> None:
    with pytest.raises(InvalidRequest, match=f"body: .*{words}"):
        await parts(PARTS.removesuffix(b"--x--\r\n") + tail)


async def test_a_form_may_have_all_its_fields_and_text_like_a_boundary() -> None:
    part = b'--x\r\ncontent-disposition: form-data; name="q"\r\n\r\na --x b\r\n'

    assert await parts(part * MAX_FIELDS + b"--x--\r\n") == {"q": ["a --x b"] * MAX_FIELDS}
