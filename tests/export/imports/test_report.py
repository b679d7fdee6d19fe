import pytest

from export.imports.report import Fault, ImportFault, Report, shown


def test_a_fault_says_where_what_and_what_to_do() -> None:
    fault = Fault(file="config.json", key="model_type", found="nllb-moe", expected="marian", remedy="use another")

    assert str(fault) == "config.json: model_type: nllb-moe; expected marian; use another"
    assert str(Fault(file="vocab.json", found="missing")) == "vocab.json: missing"


def test_all_faults_come_at_once() -> None:
    report = Report()
    report.check()

    for i in range(50):
        report.fault("config.json", f"key{i}", found="missing")
    report.fault("config.json", "key1", found="missing")

    with pytest.raises(ImportFault) as caught:
        report.check()
    lines = str(caught.value).splitlines()
    assert lines[1] == "config.json: key1: missing"
    assert lines[-1] == "and 10 faults more"


def test_what_is_unknown_is_a_fault_unless_it_is_allowed() -> None:
    report = Report(allowed={"harmless"})

    report.unknown("config.json", "harmless", 1)
    report.unknown("config.json", "strange", 1)

    assert [fault.key for fault in report.faults] == ["strange"]
    assert "--allow strange" in str(report.faults[0])


def test_what_a_file_holds_is_fit_for_a_terminal() -> None:
    assert shown("a\x1b[31m\nb") == "a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}b"
    assert len(shown("x" * 1000)) == 203
