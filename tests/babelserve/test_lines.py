import io

from babelserve.lines import MAX_BATCH_BYTES, MAX_TEXT_BYTES, Line, batches, lines_of, read_line


def make_line(text: str) -> Line:
    return read_line(text.encode() + b"\n")


def test_only_the_newline_ends_a_line() -> None:
    assert read_line("a\u2028\x0b\r\n".encode()).text == "a\u2028\x0b\r"
    assert read_line(b"last").text == "last"


def test_a_line_that_cannot_be_sent_says_why() -> None:
    assert read_line(b"ab\xff\n").error == "byte 2 of the line is not valid UTF-8"
    assert str(MAX_TEXT_BYTES) in (read_line(b"a" * (MAX_TEXT_BYTES + 1)).error or "")


class Counted(io.BytesIO):
    """Keeps the most bytes that it was asked for at once."""

    most = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        self.most = max(self.most, size if size >= 0 else 2**62)
        return super().readline(size)


def test_a_line_without_an_end_takes_no_more_memory_than_the_longest_text() -> None:
    longest = b"a" * MAX_TEXT_BYTES
    lines = [b"one\n", longest + b"\n", longest + b"a\n", longest * 3 + b"\n", b"\n", longest + b"a", b"last"]
    file = Counted(b"".join(lines[:5]) + lines[6])

    found = list(lines_of(file))

    assert [line.num_bytes for line in found] == [len(line) for line in (*lines[:5], lines[6])]
    assert [line.text for line in found] == ["one", longest.decode(), "", "", "", "last"]
    assert [line.error for line in found if line.error] == [
        f"the line has {num_bytes} bytes; the limit is {MAX_TEXT_BYTES}"
        for num_bytes in (MAX_TEXT_BYTES + 1, 3 * MAX_TEXT_BYTES)
    ]
    assert next(lines_of(io.BytesIO(lines[5]))).error == found[2].error
    assert file.most <= MAX_TEXT_BYTES + 2


def test_batches_are_bounded_in_lines_and_bytes() -> None:
    large = make_line("x" * (MAX_BATCH_BYTES // 2))
    larger = make_line("x" * (2 * MAX_BATCH_BYTES))
    small = make_line("s")

    sizes = [len(batch) for batch in batches([small] * 5 + [large] * 3 + [larger, small], lambda: 3)]

    assert sizes == [3, 3, 1, 1, 1, 1]
