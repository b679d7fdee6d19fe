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
    [
        b"- a",
        b"a: [",
        b"\xff",
        b"a: &x [1]\nb: *x",
        b"a: !!python/object/apply:os.system [ls]",
        b"a: {" * 2000,
        b"a: " + b"[" * 600_000,
        b"- " * 300_000,
        b"%YAML 1.1\n---\na: 1",
        b"[a]: 1",
        b"<<: &x {a: 1}",
        b"a: 1\n---\nb: 2",
        b"",
    ],
)
def test_what_is_no_plain_object_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        parse_yaml(text)


def test_keys_are_texts_whatever_they_look_like() -> None:
    text = b"no: 0\non: 1\nyes: 2\n00: 3\n12:30: 4\n~: 5\nnull: 6\n1.5: 7\n0x1: 8\n2001-01-01: 9\n'\"': 10\n"

    keys = ["no", "on", "yes", "00", "12:30", "~", "null", "1.5", "0x1", "2001-01-01", '"']
    assert parse_yaml(text) == {key: number for number, key in enumerate(keys)}


def test_a_key_that_is_there_twice_is_named() -> None:
    with pytest.raises(FormatError, match="has the key 'no' twice"):
        parse_yaml(b'no: 0\nyes: 1\n"no": 2\n')


def test_plain_values_are_what_they_look_like_and_quoted_ones_are_texts() -> None:
    text = b"a: [1, -2, 0.5, 1e-06, true, off, ~, 12:30, 010, relu]\nb: '1'\nc:\n"

    assert parse_yaml(text) == {"a": [1, -2, 0.5, 1e-6, True, False, None, "12:30", "010", "relu"], "b": "1", "c": None}


def test_more_than_any_vocabulary_is_refused() -> None:
    with pytest.raises(FormatError, match="holds more than 524288 keys and values"):
        parse_yaml(b"a: [" + b"a," * 2**20 + b"]")
