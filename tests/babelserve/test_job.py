import threading
from collections.abc import Iterable, Iterator

import grpc
import pytest

from babelserve import Client
from babelserve.errors import InvalidRequest, ServerFailed, Unauthenticated, Unavailable
from babelserve.job import patiently, translate_lines
from babelserve.lines import Line, TranslatedLine, read_line
from babelserve.results import TextError
from babelserve.v1 import translation_pb2
from tests.babelserve.scripted_server import Failure, ScriptedServer, ScriptedService


def make_line(text: str) -> Line:
    return read_line(text.encode() + b"\n")


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


def full(seconds: float | None = 0.001) -> Failure:
    """A refusal for want of room."""
    trailing = () if seconds is None else (("grpc-retry-pushback-ms", str(int(seconds * 1000))),)
    return grpc.StatusCode.RESOURCE_EXHAUSTED, "queue is full", trailing


def away() -> Failure:
    return grpc.StatusCode.UNAVAILABLE, "draining", ()


@pytest.fixture
def once(server: ScriptedServer) -> Iterator[Client]:
    """A client that makes one attempt, as jobs have it."""
    with Client(server.address, deadline_seconds=20, max_attempts=1) as client:
        yield client


def texts(results: Iterable[list[TranslatedLine]]) -> list[str]:
    return [line.translation.text for batch in results for line in batch]


def test_a_busy_server_gets_smaller_requests_until_it_has_room(once: Client, service: ScriptedService) -> None:
    service.most_texts = 3
    lines = [make_line(f"line {number}") for number in range(40)]

    results = translate_lines(once, lines, target="de", batch_lines=16, in_flight=4, patience_seconds=20)

    assert texts(results) == [f"LINE {number}" for number in range(40)]
    assert max(len(request.contents) for request in service.requests) <= 3


def test_a_server_that_comes_and_goes_loses_no_line(once: Client, service: ScriptedService) -> None:
    service.failures.extend([away(), full(), away(), away(), full(None)])
    lines = [make_line(f"line {number}") for number in range(9)]

    results = translate_lines(once, lines, target="de", batch_lines=2, in_flight=3, patience_seconds=20)

    assert texts(results) == [f"LINE {number}" for number in range(9)]


def test_a_server_that_stays_away_ends_the_job_when_patience_does(once: Client, service: ScriptedService) -> None:
    service.failures.extend([away()] * 100)
    told: list[str] = []

    results = translate_lines(
        once, [make_line("a")], target="de", batch_lines=1, in_flight=1, patience_seconds=0.5, tell=told.append
    )

    with pytest.raises(Unavailable, match="draining"):
        next(results)
    assert told == ["UNAVAILABLE: draining; waiting for up to 0 s"]


def test_texts_that_fail_alone_for_now_are_asked_for_again(once: Client, service: ScriptedService) -> None:
    service.failing_texts.extend(["b", "d", "d"])
    lines = [make_line(text) for text in "abcde"]

    results = translate_lines(once, lines, target="de", batch_lines=5, in_flight=1, patience_seconds=20)

    assert texts(results) == list("ABCDE")
    assert [list(request.contents) for request in service.requests] == [list("abcde"), ["b", "d"], ["d"]]


def test_a_text_that_always_fails_alone_does_not_end_the_job(once: Client) -> None:
    lines = [make_line(text) for text in ("a", "!INTERNAL broken", "b")]

    results = translate_lines(once, lines, target="de", batch_lines=3, in_flight=1, patience_seconds=20)

    (batch,) = results
    assert [line.translation.text for line in batch] == ["A", "", "B"]
    assert batch[1].translation.error == TextError(code=grpc.StatusCode.INTERNAL, message="broken")


def test_a_call_that_fails_for_once_is_tried_again(once: Client, service: ScriptedService) -> None:
    service.failures.extend([(grpc.StatusCode.INTERNAL, "a step failed", ())] * 2)

    results = translate_lines(once, [make_line("a")], target="de", batch_lines=1, in_flight=1, patience_seconds=20)

    assert texts(results) == ["A"]


def test_a_refusal_for_want_of_room_is_no_fault_of_a_call(once: Client, service: ScriptedService) -> None:
    service.failures.extend([full(), full(), (grpc.StatusCode.INTERNAL, "a step failed", ())])

    results = translate_lines(once, [make_line("a")], target="de", batch_lines=1, in_flight=1, patience_seconds=20)

    assert texts(results) == ["A"]


def test_a_text_that_takes_too_long_fails_after_its_third_try_whatever_was_refused(
    once: Client, service: ScriptedService
) -> None:
    late = (grpc.StatusCode.DEADLINE_EXCEEDED, "late", ())
    service.failures.extend([late, late, full(), late, *3 * [late]])  # a line that has failed is asked for once more

    (batch,) = translate_lines(once, [make_line("a")], target="de", batch_lines=1, in_flight=1, patience_seconds=20)

    assert batch[0].translation.error == TextError(code=grpc.StatusCode.DEADLINE_EXCEEDED, message="late")
    assert service.num_attempts == 7


def test_a_text_that_is_to_blame_is_found_among_others(once: Client, service: ScriptedService) -> None:
    service.refused_text = "bad"
    lines = [make_line(text) for text in ("a", "b", "bad", "c")]

    (batch,) = translate_lines(once, lines, target="de", batch_lines=4, in_flight=1, patience_seconds=20)

    assert [line.translation.text for line in batch] == ["A", "B", "", "C"]
    error = batch[2].translation.error
    assert error is not None
    assert (error.code, error.message) == (grpc.StatusCode.INVALID_ARGUMENT, "contents: too odd")


def test_a_text_that_takes_too_long_fails_alone(once: Client, service: ScriptedService) -> None:
    service.late_text = "slow"
    lines = [make_line(text) for text in ("a", "slow", "b")]

    (batch,) = translate_lines(once, lines, target="de", batch_lines=4, in_flight=1, patience_seconds=20)

    assert [line.translation.text for line in batch] == ["A", "", "B"]
    error = batch[1].translation.error
    assert error is not None
    assert error.code is grpc.StatusCode.DEADLINE_EXCEEDED


def test_an_unknown_key_ends_a_patient_job_at_once(once: Client, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.UNAUTHENTICATED, "unknown", ()))

    with pytest.raises(Unauthenticated):
        list(translate_lines(once, [make_line("a")], target="de", batch_lines=1, in_flight=1, patience_seconds=20))
    assert service.num_attempts == 1


def test_other_calls_can_be_patient_too(once: Client, service: ScriptedService) -> None:
    service.failures.extend([away(), full()])

    result = patiently(lambda: once.translate(["a"], target="de"), 20.0, lambda message: None)

    assert (result.translations[0].text, service.num_attempts) == ("A", 3)
