import pytest

from export.imports.report import Fault, ImportFault, Report, described, shown


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
    assert shown("a\x1b[31m\nb") == "a\\x1b[31m\\nb"
    assert len(shown("x" * 1000)) == 203


def test_a_strangers_names_forge_no_line() -> None:
    name = "x\n/models/x: proven (cpu-fp32 1.0 MB)\x1b[2J\u202e"
    report = Report()

    report.unknown(name, name, name)
    report.fault("a", found="b", expected=name, remedy=name)
    report.note(name)

    with pytest.raises(ImportFault) as caught:
        report.check()
    lines = [*str(caught.value).split("\n"), *report.notes]
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


def test_a_name_in_a_command_that_is_proposed_is_quoted() -> None:
    report = Report()

    report.unknown("f", "a; rm -rf ~", 1)

    assert "pass --allow 'a; rm -rf ~'" in str(report.faults[0])


def test_each_fault_is_compared_with_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []

    def equal(one: Fault, other: object) -> bool:
        compared.append(one)
        return one is other

    monkeypatch.setattr(Fault, "__eq__", equal)
    report = Report()

    for number in range(1000):
        report.fault("f", str(number), found="x")

    assert len(report.faults) == 1000
    assert len(compared) < 1000


def test_a_value_is_described_by_its_beginning() -> None:
    itself: list[object] = [1]
    itself.append(itself)
    doubled: list[object] = []
    for _ in range(60):
        doubled = [doubled, doubled]

    assert described({"bits": [4, None, 0.5, "x", True]}) == "{'bits': [4, None, 0.5, 'x', True]}"
    assert described(itself) == "[1, [1, list]]"
    assert described(doubled) == "[[list, list], [list, list]]"
    assert described(list(range(99))).endswith("11, ...]")
    assert (described(10**5000), described("x" * 999)) == ("int", repr("x" * 200))
