import pytest

from server.errors import InvalidRequest, ModelNotFound
from server.fronts.fields import fields_named

NAMES = {"contents[0]": "text", "contents": "texts", "decoding.": "parameters."}


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ("contents[0]", "text"),
        ("contents[1]", "texts[1]"),
        ("contents", "texts"),
        ("model", "model"),
        ("decoding.beam", "parameters.beam"),
    ],
)
def test_an_error_names_the_field_as_the_vendor_does_and_the_log_as_we_do(field: str, named: str) -> None:
    with pytest.raises(InvalidRequest, match="must be short") as caught, fields_named(NAMES):
        raise InvalidRequest(field, "must be short, not 7")

    assert str(caught.value) == f"{named}: must be short, not 7"
    assert (caught.value.field, caught.value.rule) == (field, "must be short")


@pytest.mark.parametrize("words", ["no contents", "contents cannot be read", "contentss: x", "contents"])
def test_an_error_without_a_field_is_as_it_was(words: str) -> None:
    with pytest.raises(ModelNotFound, match=f"^{words}$"), fields_named(NAMES):
        raise ModelNotFound(words)
