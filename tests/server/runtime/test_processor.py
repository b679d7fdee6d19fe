from pathlib import Path

import pytest

from server.runtime.processor import has_int8_dot_product


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("flags\t\t: fpu sse avx2 avx512f", False),
        ("flags\t\t: fpu avx2 avx_vnni", True),
        ("flags\t\t: avx512_vnni", True),
        ("Features\t: fp asimd asimddp", True),
        ("", False),
    ],
)
def test_int8_dot_products_are_read_off_the_processor(tmp_path: Path, flags: str, expected: bool) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\n{flags}\nbugs\t: none\n")

    assert has_int8_dot_product(path) is expected


def test_a_processor_that_says_nothing_has_none(tmp_path: Path) -> None:
    assert has_int8_dot_product(tmp_path / "none") is False
