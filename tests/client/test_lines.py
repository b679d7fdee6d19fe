import threading

import pytest

from client import Client
from client.errors import InvalidRequest, ServerFailed
from client.lines import MAX_BATCH_BYTES, MAX_TEXT_BYTES, Line, batches, read_line, translate_lines
from protos import translation_pb2
from tests.client.scripted_server import ScriptedService


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

    sizes = [len(batch) for batch in batches([small] * 5 + [large] * 3 + [larger, small], 3)]

    assert sizes == [3, 3, 1, 1, 1, 1]


def test_lines_keep_their_order_when_answers_come_in_another(client: Client, service: ScriptedService) -> None:
    last_arrived = threading.Event()

    def wait_for_the_last(request: translation_pb2.TranslateRequest) -> None:
        if request.contents[0] == "line 6":
            last_arrived.set()
        assert last_arrived.wait(20)

    service.before_answer = wait_for_the_last
    lines = [make_line(f"line {number}") for number in range(8)]

    results = list(translate_lines(client, lines, target="de", batch_lines=2, in_flight=4))

    assert [len(batch) for batch in results] == [2, 2, 2, 2]
    assert [line.translation.text for batch in results for line in batch] == [f"LINE {number}" for number in range(8)]


def test_a_batch_refused_after_a_good_one_fails_alone(client: Client) -> None:
    lines = [make_line(text) for text in ("good", "?INVALID_ARGUMENT too odd", "good")]

    results = list(translate_lines(client, lines, target="de", batch_lines=1, in_flight=1))

    errors = [line.translation.error for batch in results for line in batch]
    assert [error and error.message for error in errors] == [None, "too odd", None]


def test_a_refused_first_batch_is_the_options_fault(client: Client) -> None:
    with pytest.raises(InvalidRequest, match="beam too wide"):
        list(
            translate_lines(
                client, [make_line("?INVALID_ARGUMENT beam too wide")], target="de", batch_lines=1, in_flight=1
            )
        )


def test_lines_that_cannot_be_sent_fail_among_the_others(client: Client, service: ScriptedService) -> None:
    lines = [read_line(b"a\n"), read_line(b"\xff\n"), read_line(b"b\n"), read_line(b"\xfe\n")]

    results = list(translate_lines(client, lines, target="de", batch_lines=3, in_flight=2))

    translations = [line.translation for batch in results for line in batch]
    assert [translation.text for translation in translations] == ["A", "", "B", ""]
    assert [translation.error is None for translation in translations] == [True, False, True, False]
    assert [list(request.contents) for request in service.requests] == [["a", "b"]]


def test_a_failing_server_ends_it_after_the_lines_before(client: Client) -> None:
    lines = [make_line(text) for text in ("good", "?INTERNAL broken", "never")]
    results = translate_lines(client, lines, target="de", batch_lines=1, in_flight=1)

    assert next(results)[0].translation.text == "GOOD"
    with pytest.raises(ServerFailed, match="broken"):
        next(results)
