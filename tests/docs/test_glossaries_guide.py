"""Every block of docs/guides/glossaries.md, in order, as a reader runs it beside a server with the built-in model."""

from tests.docs.reader import ROOT, Reader, blocks

PAGE = (ROOT / "docs" / "guides" / "glossaries.md").read_text(encoding="utf-8")
BLOCKS = blocks(PAGE)


def test_the_page_has_no_block_of_another_form() -> None:
    assert PAGE.count("\n```") == 2 * len(BLOCKS)
    assert {language for language, _ in BLOCKS} == {"console", "csv", "python", "text"}


def test_every_block_does_what_the_page_says(reader: Reader) -> None:
    reader.start("babelserve", "babelserve")
    for language, block in BLOCKS:
        reader.run(language, block)
