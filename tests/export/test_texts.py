from pathlib import Path

import pytest

from export.texts import read_lines


def test_a_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("\ufeffGrün\n".encode())

    assert read_lines("--text", tmp_path / "text") == ["Grün"]


def test_only_line_feeds_separate_lines_and_empty_lines_stay(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("a\u2028b\r\n\nc\x0cd\n".encode())

    assert read_lines("--text", tmp_path / "text") == ["a\u2028b", "", "c\x0cd"]


def test_a_file_without_an_end_is_refused_by_its_flag(tmp_path: Path) -> None:
    with (tmp_path / "text").open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(ValueError, match=rf"^--reference {tmp_path}/text has more than 67108864 bytes$"):
        read_lines("--reference", tmp_path / "text")


def test_what_is_no_text_is_refused_by_its_flag(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\xff")

    with pytest.raises(ValueError, match=rf"^--text {tmp_path}/text is no UTF-8: .* position 1"):
        read_lines("--text", tmp_path / "text")
