import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import Code, EngineFailed, InvalidRequest, ModelNotFound
from server.fronts.front import (
    STATUSES,
    BodyTooLong,
    BodyTooSlow,
    FailedText,
    Front,
    check_text,
    check_texts,
    raise_failure,
)

FRONT = Front(name="http", body=lambda error, words, status: words, statuses={Code.NOT_FOUND: 400})


def test_every_code_has_a_status() -> None:
    assert set(STATUSES) == set(Code)


def test_a_front_may_have_statuses_of_its_own() -> None:
    assert FRONT.status_of(ModelNotFound("none")) == 400
    assert FRONT.status_of(InvalidRequest("q", "is missing")) == 400
    assert FRONT.status_of(BodyTooLong("body", "is too long")) == 413
    assert FRONT.status_of(BodyTooSlow("body", "is too slow")) == 408


def test_only_errors_of_the_server_name_the_request() -> None:
    assert FRONT.words_of(EngineFailed("failed"), "my-id") == "failed; request id my-id"
    assert FRONT.words_of(InvalidRequest("q", "is missing"), "my-id") == "q: is missing"


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), (True, "a boolean"), (7, "a number"), (0.5, "a number"), ([], "a list"), ({}, "an object")],
)
def test_what_is_no_text_is_named(value: object, kind: str) -> None:
    with pytest.raises(InvalidRequest, match=f"q: must be a string, not {kind}"):
        check_text("q", value)


def test_a_text_must_have_a_form_in_utf_8() -> None:
    assert check_text("q", "a😀") == "a😀"
    with pytest.raises(InvalidRequest, match="q: must be Unicode text"):
        check_text("q", "a\ud800")


def test_the_first_text_that_failed_is_raised_as_it_failed() -> None:
    failed = pb.Translation(status=pb.Status(code=8, message="too much"))

    raise_failure([pb.Translation(text="a")])
    with pytest.raises(FailedText, match="too much") as caught:
        raise_failure([pb.Translation(text="a"), failed])
    assert FRONT.status_of(caught.value) == 429
    assert caught.value.is_recorded
    assert caught.value.retry_after_seconds == 1.0


def test_texts_are_a_list_of_texts() -> None:
    assert check_texts("q", ["a", ""]) == ["a", ""]
    with pytest.raises(InvalidRequest, match=r"q\[1\]: must be a string, not null"):
        check_texts("q", ["a", None])
    with pytest.raises(InvalidRequest, match="q: must be a list of strings, not a string"):
        check_texts("q", "a")
