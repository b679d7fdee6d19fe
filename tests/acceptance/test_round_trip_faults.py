import pytest

from tests.acceptance import round_trip_faults
from tests.acceptance.round_trip_faults import markdown_fault, po_fault

_PO = b'msgid ""\nmsgstr "Language: de\\n"\n\n#: a.c:1\nmsgid "A \\"dog\\""\nmsgstr "Hund"\n'


def test_what_comes_back_has_no_fault() -> None:
    assert markdown_fault(b"# One *two*\n\n- [a] <b>\n\n[a]: http://x\n") is None
    assert po_fault(_PO) is None


def test_a_document_that_reads_otherwise_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_trip_faults, "identity", lambda document: "One **two**")

    assert "two" in (markdown_fault(b"One *two*") or "")


def test_a_translation_that_is_not_its_source_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_trip_faults, "_without_translations", lambda text: text)

    assert po_fault(_PO) == "'A \"dog\"' is 'Hund'"
