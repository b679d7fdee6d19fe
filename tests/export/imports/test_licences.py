from pathlib import Path

import pytest

from export.imports.licences import read_licence
from export.imports.report import Report


@pytest.mark.parametrize(
    ("card", "default", "licence", "note"),
    [
        ("---\nlanguage: de\nlicense: apache-2.0\n---\n# Model", "unknown", "apache-2.0", ""),
        ('---\nlicense: "cc-by-4.0"\n---', "unknown", "cc-by-4.0", ""),
        ("# Model\nlicense: mit", "unknown", "unknown", "the licence is unknown"),
        (None, "unknown", "unknown", "the licence is unknown"),
        (None, "cc-by-nc-4.0", "cc-by-nc-4.0", "must not be used commercially"),
        ("---\nlicense: cc-by-nc-4.0\n---", "unknown", "cc-by-nc-4.0", "must not be used commercially"),
        ("---\nlicense:\n- mit\n- cc-by-nc-4.0\n---", "unknown", "mit, cc-by-nc-4.0", "must not be used commercially"),
        ("---\nlicense: [mit, apache-2.0]\n---", "unknown", "mit, apache-2.0", ""),
        ("---\nlicense: other\nlicense_name: CC BY-NC 4.0\n---", "mit", "other, CC BY-NC 4.0", "used commercially"),
        ("---\r\nlicense: >\r\n  for non-commercial use\r\n---\r\n", "mit", "for non-commercial use", "commercially"),
        (f"---\nlicense: {'x' * 250} nc\n---", "mit", f"{'x' * 200}...", "used commercially"),
        ("---\nlicense: {a: b}\n---", "unknown", "{'a': 'b'}", ""),
        ("---\nlicense: &a cc-by-nc-4.0\n---", "mit", "mit", "README.md: its header has YAML aliases"),
        ("---\n# nothing\n---", "mit", "mit", "README.md: its header is empty"),
    ],
)
def test_the_card_says_the_licence(tmp_path: Path, card: str | None, default: str, licence: str, note: str) -> None:
    report = Report()
    if card is not None:
        (tmp_path / "README.md").write_text(card, encoding="utf-8")

    assert read_licence(tmp_path, report, default) == licence
    assert note in "".join(report.notes)
    assert bool(report.notes) == bool(note)
