import pytest

from export.imports.formats.tensors import FormatError
from export.imports.formats.yaml_files import parse_yaml


def test_settings_are_read() -> None:
    assert parse_yaml(b"type: transformer\ndim-vocabs:\n  - 3\n  - 4\n") == {
        "type": "transformer",
        "dim-vocabs": [3, 4],
    }


@pytest.mark.parametrize(
    "text",
    [b"- a", b"a: [", b"\xff", b"a: &x [1]\nb: *x", b"a: !!python/object/apply:os.system [ls]", b"a: {" * 2000],
)
def test_what_is_no_plain_object_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        parse_yaml(text)
