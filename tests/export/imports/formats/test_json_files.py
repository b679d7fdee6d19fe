from pathlib import Path
from typing import Any

import pytest

from export.imports.formats.json_files import parse_limited, read_bytes, read_json, read_object, read_vocabulary
from export.imports.formats.tensors import FormatError


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', "[" * 100_000, '"\\ud800"', "NaN"])
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")

    with pytest.raises(FormatError, match="is no JSON"):
        read_json(tmp_path / "a.json")


def test_large_files_and_what_is_no_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(11))

    for path, expected in (
        (tmp_path / "a", "^has 11 bytes, at most 10 are read$"),
        (tmp_path, "is no regular file|cannot be read"),
    ):
        with pytest.raises(FormatError, match=expected):
            read_bytes(path, 10)


@pytest.mark.parametrize("document", [{"a": 0, "b": 1}, ["a", "b"], {"b": 1, "a": 0}])
def test_a_vocabulary_is_a_list_by_id(document: Any) -> None:
    assert read_vocabulary(document) == ["a", "b"]


@pytest.mark.parametrize("document", [{"a": 0, "b": 2}, {"a": 1, "b": 1}, {"a": "0"}, [1], 3, {"a": True}])
def test_a_vocabulary_has_every_id_once(document: Any) -> None:
    with pytest.raises(FormatError, match="pieces"):
        read_vocabulary(document)


def test_an_object_is_one() -> None:
    assert read_object({"a": {"b": 1}}, "a") == {"b": 1}
    for document, key in (([], ""), ({}, "a"), ([], "a")):
        with pytest.raises(FormatError, match="holds no object"):
            read_object(document, key)


def test_a_small_file_of_many_values_is_refused() -> None:
    assert parse_limited(b"[" + b"0," * 40 + b"0]", 24 * 41) == [0] * 41

    with pytest.raises(FormatError, match="holds about 42 values, at most 41 are read"):
        parse_limited(b"[" + b"0," * 40 + b"{}]", 24 * 41)
