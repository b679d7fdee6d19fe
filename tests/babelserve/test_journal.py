import gzip
import json
from pathlib import Path

import pytest

from babelserve.journal import Journal
from babelserve.outputs import UsageError

TEXTS = ["one", "two", "two"]


def started(path: Path) -> Journal:
    journal = Journal(path, TEXTS, "de")
    assert journal.open(resume=False) == 0
    journal.add(2, "zwei\n\u2028")
    journal.add(0, "eins")
    return journal


def test_a_stopped_job_goes_on_after_its_whole_lines(tmp_path: Path) -> None:
    journal = started(tmp_path / "out.po")
    assert journal.leave()
    assert journal.part is not None
    with journal.part.open("ab") as file:
        file.write(b'{"text": 1, "ha')

    again = Journal(tmp_path / "out.po", TEXTS, "de")
    assert again.open(resume=True) == 2
    assert again.translations == ["eins", None, "zwei\n\u2028"]
    again.add(1, "zwo")
    again.finish(b"whole")

    assert [path.name for path in tmp_path.iterdir()] == ["out.po"]
    assert (tmp_path / "out.po").read_bytes() == b"whole"
    assert not again.leave()


def test_each_line_is_json_with_position_and_hash(tmp_path: Path) -> None:
    journal = started(tmp_path / "out.po")
    journal.leave()
    assert journal.part is not None

    lines = [json.loads(line) for line in journal.part.read_bytes().split(b"\n")[:-1]]

    assert [(line["text"], line["translation"]) for line in lines] == [(2, "zwei\n\u2028"), (0, "eins")]
    assert len(lines[0]["hash"]) == 16
    assert lines[0]["hash"] != lines[1]["hash"]


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        (["one", "two", "three"], "de"),
        (["one"], "de"),
        (TEXTS, "fr"),
        (TEXTS, ["de", {"glossary": {"one": "Eins"}}]),
    ],
)
def test_another_job_is_refused(texts: list[str], settings: object, tmp_path: Path) -> None:
    started(tmp_path / "out.po").leave()

    with pytest.raises(UsageError, match="is of another file, or of other options, such as terms: remove it"):
        Journal(tmp_path / "out.po", texts, settings).open(resume=True)


@pytest.mark.parametrize(
    "line",
    [
        b"EINS\n",
        b"[]\n",
        b'{"text": "a", "hash": 1, "translation": 2}\n',
        b"\xff\n",
        b"5\n",
        b"[" * 100_000 + b"\n",
    ],
)
def test_what_is_no_journal_is_refused(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "out.po.part").write_bytes(line)

    with pytest.raises(UsageError, match="is no journal of a file with a format: remove it"):
        Journal(tmp_path / "out.po", TEXTS, "de").open(resume=True)


def test_a_translation_that_is_no_text_is_refused(tmp_path: Path) -> None:
    journal = started(tmp_path / "out.po")
    journal.leave()
    assert journal.part is not None
    journal.part.write_bytes(journal.part.read_bytes().replace(b"eins", b"\\ud800"))

    with pytest.raises(UsageError, match="is no journal"):
        Journal(tmp_path / "out.po", TEXTS, "de").open(resume=True)


def test_without_resume_it_begins_anew_and_leaves_nothing_if_nothing_is_done(tmp_path: Path) -> None:
    started(tmp_path / "out.po").leave()
    journal = Journal(tmp_path / "out.po", TEXTS, "de")

    assert journal.open(resume=False) == 0
    assert not journal.leave()
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    journal = Journal(tmp_path / "link", TEXTS, "de")
    journal.open(resume=False)

    journal.finish(b"whole")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_standard_output_and_devices_have_no_journal(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for path in (None, Path("/dev/null")):
        journal = Journal(path, TEXTS, "de")
        assert journal.open(resume=True) == 0
        journal.add(0, "eins")
        assert journal.translations == ["eins", None, None]
        journal.finish(b"whole")
        assert not journal.leave()
    assert capfdbinary.readouterr().out == b"whole"


def test_a_journal_has_one_job_at_a_time(tmp_path: Path) -> None:
    journal = started(tmp_path / "out.po")

    for resume in (False, True):
        with pytest.raises(UsageError, match=r"^another job writes .*out\.po\.part: "):
            Journal(tmp_path / "out.po", TEXTS, "de").open(resume=resume)
    journal.finish(b"whole")

    assert (tmp_path / "out.po").read_bytes() == b"whole"


def test_the_output_is_gzipped_if_its_name_says_so(tmp_path: Path) -> None:
    started(tmp_path / "out.po.gz").finish(b"whole")

    assert gzip.decompress((tmp_path / "out.po.gz").read_bytes()) == b"whole"


def test_what_stands_in_the_place_of_the_output_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out.po.part.whole").symlink_to(tmp_path / "precious")
    journal = started(tmp_path / "out.po")

    with pytest.raises(UsageError, match=r"out\.po\.part\.whole is a link"):
        journal.finish(b"whole")

    assert journal.leave()
    assert (tmp_path / "precious").read_text() == "precious"
