import inspect

import pytest

from server import errors

DECLARED = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.TranslationError) and value is not errors.TranslationError
]


@pytest.mark.parametrize("error", DECLARED)
def test_every_error_has_its_line_with_its_code_in_the_docs(error: type[errors.TranslationError]) -> None:
    lines = (errors.__doc__ or "").splitlines()

    assert any(line.split()[:2] == [error.__name__, error.code.name] for line in lines)


def test_an_invalid_request_names_its_field() -> None:
    error = errors.InvalidRequest("decoding.beam_size", "must be from 1 to 8, not 9")

    assert str(error) == "decoding.beam_size: must be from 1 to 8, not 9"
    assert error.field == "decoding.beam_size"


def test_a_startup_error_lists_every_fault() -> None:
    assert str(errors.BundleError(["one", "two"])) == "one\ntwo"
