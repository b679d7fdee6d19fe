"""Every block of docs/tutorial.md, in order, as a reader runs it: in a checkout, by its commands, with their output.

The network that is trained is tiny, and trained for a few updates; the sentences of its dev set have two words. Else
the reader does what the page says (reader.py).
"""

import shutil

import pytest

from tests.docs.reader import ROOT, Reader, blocks

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = blocks(PAGE)


def test_the_page_has_no_block_of_another_form() -> None:
    assert PAGE.count("\n```") == 2 * len(BLOCKS)
    assert {language for language, _ in BLOCKS} == {"console", "python", "yaml"}


@pytest.mark.skipif(
    None in map(shutil.which, ("bash", "curl", "make", "zcat")), reason="bash, curl, make or zcat is not there"
)
def test_every_block_of_the_tutorial_does_what_it_says(reader: Reader) -> None:
    for language, block in BLOCKS:
        if block.startswith("$ prometheus ") and shutil.which("prometheus") is None:
            pytest.skip("there is no prometheus: the blocks from there on were not run")
        reader.run(language, block)
