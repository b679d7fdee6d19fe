"""Text of the source as Markdown."""

from docs.generate.markdown_text import code, page, prose, table


def test_text_is_shown_as_it_is() -> None:
    assert prose("a_b *c* [d]\n  e <f> & g|h") == r"a\_b \*c\* \[d\] e &lt;f&gt; &amp; g&#124;h"


def test_what_is_code_stays_code() -> None:
    assert prose("`a_b|c` takes --max-rows, not well-known") == "`a_b|c` takes `--max-rows`, not well-known"


def test_addresses_are_links() -> None:
    assert prose("see https://grpc.io/a_b/.") == "see <https://grpc.io/a_b/>."


def test_nothing_is_no_code() -> None:
    assert (code(""), code(0)) == ("", "`0`")


def test_a_table_has_no_column_that_is_empty() -> None:
    assert table(("A", "B", "C"), [("1", "", "2"), ("3", "", "")]) == "| A | C |\n| --- | --- |\n| 1 | 2 |\n| 3 |  |\n"


def test_blocks_of_a_page_are_apart() -> None:
    assert page("# A", "", "text\n") == "# A\n\ntext\n"
