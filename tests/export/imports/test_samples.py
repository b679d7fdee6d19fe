import itertools
from pathlib import Path

import pytest

from export.imports.samples import _FOLDER, own_sentences, read_sentences, sample_set, spread


def test_ours_say_the_same_in_every_language() -> None:
    files = sorted(_FOLDER.glob("*.txt"))

    assert len(files) >= 8
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) == 34
        assert all(line == line.strip() and line for line in lines)
        assert len(set(lines)) == 34


def test_a_script_that_ours_are_not_in_has_none() -> None:
    assert own_sentences("de-CH")
    assert own_sentences("zh-Hans")
    assert not own_sentences("zh-Hant")
    assert not own_sentences("fi")


def test_each_direction_has_its_turn() -> None:
    directions = itertools.product(("en", "fi", "de"), ("de", "en", "nl"))

    dev = sample_set([(source, target) for source, target in directions if source != target], None)

    assert len(dev.sources) == len(dev.pairs) == 68
    assert not dev.references
    assert set(dev.pairs) == {("en", "de"), ("en", "nl"), ("de", "en"), ("de", "nl")}
    assert dev.sources[0] == own_sentences("en")[0]


def test_the_users_own_sentences_are_in_the_first_source_language() -> None:
    dev = sample_set([("fi", "en")], ["eins", "zwei"])

    assert (list(dev.sources), list(dev.pairs)) == (["eins", "zwei"], [("fi", "en")] * 2)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\n\n b \n", "has 2 sentences, at least 32 are needed"),
        (b"\xff\xfe\n" * 40, "is no UTF-8"),
    ],
)
def test_a_users_text_that_cannot_serve_is_refused_by_name(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "text").write_bytes(content)

    with pytest.raises(ValueError, match=f"--text {tmp_path}/text {expected}"):
        read_sentences(tmp_path / "text")


def test_lines_of_a_users_text_are_sentences_but_for_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbf" + b"eins\n\n zwei \n" * 20)

    assert read_sentences(tmp_path / "text") == ["eins", "zwei"] * 20


def test_a_language_without_sentences_needs_the_users() -> None:
    with pytest.raises(
        ValueError, match=r"sample sentences in .*de.*, not in fi: give some of your own with --text FILE"
    ):
        sample_set([("fi", "en")], None)


def test_codes_are_spread() -> None:
    assert spread(list("abcdefgh"), 4) == ["a", "c", "e", "g"]
    assert spread(["a"], 4) == ["a"]
