import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from export.imports.formats.marian_bin import list_marian, read_lexical
from export.imports.formats.tensors import FormatError
from tests.export.imports.writers import write_lexical, write_marian


def test_floats_are_as_they_are_and_int8_as_what_it_stands_for(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "decoder_l1_ffn_W1": rng.integers(-127, 128, (4, 6)).astype(np.float32) / 50,
        "Wemb": rng.integers(-127, 128, (5, 4)).astype(np.float32) / 20,
        "decoder_l1_ffn_b1": rng.normal(size=(1, 6)).astype(np.float32),
    }
    write_marian(tmp_path / "m.bin", arrays, int8={"decoder_l1_ffn_W1": 50, "Wemb": 20})

    listed = list_marian(tmp_path / "m.bin")

    assert {name: tensor.shape for name, tensor in listed.items()} == {n: a.shape for n, a in arrays.items()}
    assert {tensor.dtype for tensor in listed.values()} == {"float32"}
    for name, array in arrays.items():
        np.testing.assert_allclose(listed[name].load().numpy(), array, rtol=1e-6)


@pytest.mark.parametrize("length", [0, 8, 40, 100, 300])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, length: int) -> None:
    write_marian(tmp_path / "m.bin", {"Wemb": np.ones((100, 4), np.float32)})
    (tmp_path / "m.bin").write_bytes((tmp_path / "m.bin").read_bytes()[:length])

    with pytest.raises(FormatError, match="ends"):
        list_marian(tmp_path / "m.bin")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (struct.pack("<QQ", 2, 0), "of version 2; 1 is read"),
        (struct.pack("<QQ", 1, 2**40), "claims to hold"),
        (struct.pack("<QQQQQQ", 1, 1, 2**40, 0x404, 0, 0), "claims a name of"),
        (
            struct.pack("<QQQQQQ", 1, 1, 2, 0x6101, 0, 4) + b"a\0" + struct.pack("<Q", 0) + bytes(4),
            "type 0x6101, packed for one",
        ),
        (
            struct.pack("<QQQQQQ", 1, 1, 2, 0x404, 1, 4) + b"a\0" + struct.pack("<iQ", 2, 0) + bytes(4),
            "has 4 bytes for a",
        ),
        (
            struct.pack("<QQQQQQ", 1, 1, 2, 0x404, 1, 4) + b"a\0" + struct.pack("<iQ", -2, 0) + bytes(4),
            "none of a model's",
        ),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "m.bin").write_bytes(content)

    with pytest.raises(FormatError, match=expected):
        list_marian(tmp_path / "m.bin")


def test_a_lexical_shortlist_is_read(tmp_path: Path) -> None:
    write_lexical(tmp_path / "lex.bin", 5, [[], [7, 8], [9]])

    first, candidates = read_lexical(tmp_path / "lex.bin", 3)

    assert first == 5
    assert [ids.tolist() for ids in candidates] == [[], [7, 8], [9]]


def test_a_shortlist_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    write_lexical(tmp_path / "lex.bin", 5, [[], [7, 8]])

    with pytest.raises(FormatError, match="of 2 source tokens; the model has 3"):
        read_lexical(tmp_path / "lex.bin", 3)


def test_a_damaged_shortlist_is_refused(tmp_path: Path) -> None:
    write_lexical(tmp_path / "lex.bin", 5, [[], [7, 8]])
    data = (tmp_path / "lex.bin").read_bytes()
    for broken, expected in ((data[:-1], "its header says"), (b"x" + data[1:], "is no binary lexical shortlist")):
        (tmp_path / "lex.bin").write_bytes(broken)
        with pytest.raises(FormatError, match=expected):
            read_lexical(tmp_path / "lex.bin", 2)
