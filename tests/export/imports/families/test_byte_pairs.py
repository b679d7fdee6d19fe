from pathlib import Path

import pytest

from export.imports.families.byte_pairs import end_is_piece, read_merges, with_ends, write_moses
from export.imports.report import Report
from server.bundle.moses import MosesFile


def test_pieces_that_end_a_word_are_marked() -> None:
    pieces = ["<s>", "th@@", "e", "@@", "a@@b", "@-@"]

    assert with_ends(pieces, ("<s>",)) == ["<s>", "th", "e</w>", "@@</w>", "a@@b</w>", "@-@</w>"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#version: 0.2\ne n</w>\nt h\n", ("e n</w>", "t h")),
        ("t h 1200\ne n</w> 1100\n", ("t h", "e n</w>")),  # as fastBPE counts
        ("#version: 0.1\r\nn </w>\r\n", ("n </w>",)),
    ],
)
def test_merges_are_read_whoever_wrote_them(tmp_path: Path, text: str, expected: tuple[str, ...]) -> None:
    (tmp_path / "bpecodes").write_bytes(text.encode())
    report = Report()

    assert read_merges(tmp_path, "bpecodes", report) == expected
    assert report.faults == []
    assert end_is_piece(expected) is ("n </w>" in expected)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xff", "bpecodes: 'utf-8' codec can't decode"),
        (b"#version: 0.2\n", "bpecodes: nothing; expected two pieces a line"),
        (b"a\n", "bpecodes: the line 'a'; expected two pieces a line"),
        (None, "bpecodes: cannot be read"),
    ],
)
def test_what_is_no_file_of_merges_is_named(tmp_path: Path, data: bytes | None, expected: str) -> None:
    if data is not None:
        (tmp_path / "bpecodes").write_bytes(data)
    report = Report()

    assert read_merges(tmp_path, "bpecodes", report) == ()
    assert expected in str(report.faults[0])


def test_a_wrong_tokenizer_is_a_fault_of_its_merges() -> None:
    report = Report()

    write_moses(MosesFile(source_language="en", target_language="de", merges=("ab",)), "x.codes", [[], []], (), report)

    assert "x.codes: 1 merges are no two pieces with a space between, such as 'ab'" in map(str, report.faults)
