"""The reference in the repository is what the source says now, and all links of the documentation lead somewhere."""

import re
from pathlib import Path

import pytest

from docs.generate.pages import PAGES, ROOT

REPOSITORY = ROOT.parent
DOCUMENTS = [*REPOSITORY.glob("*.md"), *ROOT.rglob("*.md"), *(REPOSITORY / "deploy").glob("*.md")]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_what_the_source_says(path: str) -> None:
    written = (ROOT / path).read_text(encoding="utf-8")

    assert written == PAGES[path](), "run 'make reference'"


def test_no_page_is_left_over() -> None:
    made = {path for path in PAGES if path.startswith("reference/")}

    assert {each.relative_to(ROOT).as_posix() for each in (ROOT / "reference").iterdir()} == made


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_every_link_within_the_repository_leads_somewhere(document: Path) -> None:
    links = LINK.findall(
        re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    )

    assert [link for link in links if not (document.parent / link).exists()] == []
