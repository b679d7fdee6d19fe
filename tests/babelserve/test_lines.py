import grpc

from babelserve.lines import MAX_BATCH_BYTES, MAX_TEXT_BYTES, Line, batches, facts, failed_line, read_line


def make_line(text: str) -> Line:
    return read_line(text.encode() + b"\n")


def test_only_the_newline_ends_a_line() -> None:
    assert read_line("a\u2028\x0b\r\n".encode()).text == "a\u2028\x0b\r"
    assert read_line(b"last").text == "last"


def test_a_line_that_cannot_be_sent_says_why() -> None:
    assert read_line(b"ab\xff\n").error == "byte 2 of the line is not valid UTF-8"
    assert str(MAX_TEXT_BYTES) in (read_line(b"a" * (MAX_TEXT_BYTES + 1)).error or "")


def test_batches_are_bounded_in_lines_and_bytes() -> None:
    large = make_line("x" * (MAX_BATCH_BYTES // 2))
    larger = make_line("x" * (2 * MAX_BATCH_BYTES))
    small = make_line("s")

    sizes = [len(batch) for batch in batches([small] * 5 + [large] * 3 + [larger, small], lambda: 3)]

    assert sizes == [3, 3, 1, 1, 1, 1]


def test_facts_of_a_line_are_those_that_it_has() -> None:
    line = failed_line(make_line("a"), grpc.StatusCode.INTERNAL, "oops")

    assert facts(line)["error"] == {"code": "INTERNAL", "message": "oops"}
    assert facts(line).keys().isdisjoint({"terms", "kept", "route", "detected"})
