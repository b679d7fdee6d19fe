from pathlib import Path

from export.imports.formats.json_files import MAX_SETTINGS_BYTES
from export.imports.report import Report
from export.imports.settings import ForeignSettings, missing_files, read_settings


def faults(report: Report) -> list[str]:
    return [str(fault) for fault in report.faults]


def test_values_are_read_as_what_they_must_be() -> None:
    report = Report()
    settings = ForeignSettings("c.json", {"n": 3, "f": 4.0, "x": 0.5, "b": True, "t": "relu", "none": None}, report)

    assert (settings.whole("n"), settings.whole("f"), settings.whole("none", 7)) == (3, 4, 7)
    assert settings.number("x", 1.0, least=0, most=1) == 0.5
    assert (settings.flag("b", False), settings.text("t"), settings.text("absent", "d")) == (True, "relu", "d")
    settings.expect("b", True)
    settings.expect("absent", 1)
    settings.finish()
    assert report.faults == []


def test_wrong_values_are_faults_that_name_what_would_be_right() -> None:
    report = Report()
    settings = ForeignSettings("c.json", {"n": -1, "x": "1", "b": 1, "t": 3, "e": 1}, report)

    settings.whole("n")
    settings.whole("absent", least=1, most=9)
    settings.number("x", 1.0, least=0, most=1)
    settings.flag("b", False)
    settings.text("t")
    settings.expect("e", True)

    assert faults(report) == [
        "c.json: n: -1; expected a whole number from 0 to 1048576",
        "c.json: absent: missing; expected a whole number from 1 to 9",
        "c.json: x: '1'; expected a number from 0 to 1",
        "c.json: b: 1; expected true or false",
        "c.json: t: 3; expected a text",
        "c.json: e: 1; expected True",
    ]


def test_a_key_that_nobody_reads_is_a_fault() -> None:
    report = Report(allowed={"mine"})
    settings = ForeignSettings("c.json", {"read": 1, "harmless": 1, "mine": 1, "nothing": None, "rotary": True}, report)

    settings.whole("read")
    settings.finish({"harmless"})

    assert [fault.key for fault in report.faults] == ["rotary"]


def test_a_file_may_be_missing_or_broken(tmp_path: Path) -> None:
    report = Report()
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")

    assert read_settings(tmp_path, "none.json", report, is_optional=True).values == {}
    for name in ("none.json", "broken.json", "list.json"):
        assert read_settings(tmp_path, name, report).values == {}

    assert [fault.file for fault in report.faults] == ["none.json", "broken.json", "list.json"]
    assert missing_files(tmp_path, ["list.json", "spm"], report, "get it")
    assert str(report.faults[-1]) == "spm: missing; expected a file of the model; get it"


def test_a_file_of_settings_that_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    report = Report()
    start, end = '{"x": "', '"}'
    for size in (MAX_SETTINGS_BYTES, MAX_SETTINGS_BYTES + 1):
        text = start + "0" * (size - len(start) - len(end)) + end
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        settings = read_settings(tmp_path, "config.json", report)
        assert ("x" in settings) == (size == MAX_SETTINGS_BYTES)

    assert list(map(str, report.faults)) == ["config.json: has 4194305 bytes, at most 4194304 are read"]
