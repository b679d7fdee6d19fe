"""Hand-made documents, each with what is translated of it, and random ones."""

import random

import pytest

from server.text.markup.markdown import escape, read_markdown
from tests.server.text.markup.identity import identity, joined


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("One\ntwo\n\nThree\n", ["One two", "Three"]),
        ("# One\r\n## Two ##\r\nThree\r\n---\r\nThree\n===\nFour\n---\n", ["One", "Two", "Three", "Three", "Four"]),
        ("- One\n  goes on\n* [ ] Two\n1. Three\n\n   four\n", ["One goes on", "Two", "Three", "four"]),
        ("- One\n    - two\n\n          code\n", ["One", "two"]),
        ("* >One\n- > > Two\n1. > three\n", ["One", "Two", "three"]),
        ("- [`[a]::b` is\n  c][x]\n\n[x]: http://y\n[\\[z]: http://y\n", ["\U000f0000 is c"]),
        ("> One\n> two\n>\n> > Three\n\nfour", ["One two", "Three", "four"]),
        ("One  \ntwo\\\nthree", ["One", "two", "three"]),
        ("One<br>two <p align=x>Three</P> *four<br/>\nfive*", ["One", "two", "Three", "four", "five"]),
        (
            "One | <ul><li>Two</li><li>Three</li></ul>\n--|--\nFour<br/>five | six",
            ["One", "Two", "Three", "Four", "five", "six"],
        ),
        ("One\rtwo\r\rThree\r- Four  \r  five\r\r# Six\r", ["One two", "Three", "Four", "five", "Six"]),
        ("One | two\n--- | ---\nThree | four \\| five\n\nSix", ["One", "two", "Three", "four | five", "Six"]),
        ("---\ntitle: x\n---\nOne\n", ["One"]),
        ("One\n\n---\n***\n", ["One"]),
        ("One\n```py\ncode\n\n> code\n```\ntwo\n~~~\ncode", ["One", "two"]),
        ("```\ncode\n    ```\ncode\n\t```\n> ```\n   ```\nOne\n", ["One"]),
        ("- One\n\n  ```\n  code\n      ```\n  code\n     ```\n  two\n", ["One", "two"]),
        ("> ```\n>     ```\n> > ```\n> code\n>  ```\n> One\n", ["One"]),
        ("One\n\n    code\n\ntwo\n", ["One", "two"]),
        ("<div>\nhtml\n\nOne\n\n<!-- a\n\nb -->\ntwo", ["html", "One", "two"]),
        ("<pre>\na\n\nb</pre>\n> <div>\n> html\n\n<p>One\n<b>two</b> &amp;\n</p>\n", ["One two &"]),
        ("One\n\n    > code\n    code\n\n- two\n\n      > code\n", ["One", "two"]),
        ("[a]: http://x 'title'\n\nOne\n", ["One"]),
        ("[^1]: One\n", ["One"]),
        ("One\n: Two\n\n> [!NOTE]\n> Three\n", ["One", "Two", "Three"]),
        ("12\n\n`code`\n", []),
        ("", []),
    ],
)
def test_a_document_has_texts(document: str, expected: list[str]) -> None:
    read = read_markdown(document)

    assert [block.text for block in read.blocks] == expected
    assert identity(read).split() == document.split() or "\n> two" in document


def test_what_is_not_text_comes_back_as_it_is() -> None:
    document = (
        "+++\nx = 1\n+++\r\n\r\n#  One  ##\r\n\n-   Two *three*  \n    `four` five\n\n\t- six\n\n|a|b|\n|:-|-:|\n| c |d"
        "\n\n> 1. Seven [eight](<x y> 'z')!\n>\n>        code\n\n<br/>\n\n[x]: y\n\n~~~~\n~~~\n~~~~\n* * *\n"
    )

    assert identity(read_markdown(document)) == document


@pytest.mark.parametrize("piece", ["- ", "> ", "[", "![", "*a ", "`", "|", "<b ", "# ", "1. ", "\\", "a  \n", "[a]: "])
def test_many_marks_come_back(piece: str) -> None:
    document = piece * 10_000 + "two\n"

    assert identity(read_markdown(document)).count("two") == 1


PIECES = (
    *(
        "One",
        "two",
        " ",
        "\n",
        "\n\n",
        "*",
        "**",
        "_",
        "`",
        "``",
        "[",
        "]",
        "](x)",
        "](x 'y')",
        "![",
        "<b>",
        "</b>",
        "<br>",
    ),
    *(
        "# ",
        "> ",
        "- ",
        "1. ",
        "    ",
        "```\n",
        "|",
        "\n|-|\n",
        "---\n",
        "&amp;",
        "\\",
        "\\*",
        "~~",
        "<!-- ",
        "-->",
        "  \n",
    ),
    *("[x]: y\n", "[x]", "<div>", "\t", "<", "&", "\r\n", "+++\n", "\U000f0000", "[^1]", "=", "é", "http://x.y"),
)


def test_random_documents_are_read_to_their_end() -> None:
    choose = random.Random(0)
    for _ in range(3000):
        document = "".join(choose.choices(PIECES, k=choose.randrange(1, 30)))
        again = identity(read_markdown(document))

        for piece in ("One", "two", "<b>", "</b>", "<br>", "http://x.y", "\U000f0000", "é"):
            assert again.count(piece) == document.count(piece), document


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("## A dog <!-- omit -->\n", ["A dog"]),
        ("A dog\n<wbr>\nruns here\n", ["A dog  runs here"]),
        ("A dog\n<https://example.org>\nruns here\n", ["A dog \U000f0000 runs here"]),
        ("<br>\nA dog\n", ["A dog"]),
    ],
)
def test_html_in_a_paragraph_does_not_end_it(source: str, texts: list[str]) -> None:
    document = read_markdown(source)

    assert [block.text for block in document.blocks] == texts
    assert "<!--" not in "".join(block.text for block in document.blocks)


def test_texts_of_html_blocks_are_written_as_html_and_those_behind_as_markdown() -> None:
    document = read_markdown("<details><summary>One</summary>\n\nTwo\n\n</details>\n")

    assert [block.escape("*a* < b") for block in document.blocks] == ["*a* &lt; b", r"\*a\* < b"]
    assert joined(document, ["1", "2"]) == "<details><summary>1</summary>\n\n2\n\n</details>\n"


def test_an_exclamation_mark_before_a_link_does_not_make_an_image_of_it() -> None:
    document = read_markdown(r"Look\![a dog](b)" + "\n")

    assert identity(document) == r"Look\![a dog](b)" + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * 3, a_b and #1 - 2", "2 * 3, a_b and #1 - 2"),
        ("*a* _b_ `c`", r"\*a\* \_b\_ \`c\`"),
        ("__a__", r"\_\_a\_\_"),
        ("[a](b) [c]", r"[a\](b) [c]"),
        ("<b> &amp; a < b & c", r"\<b> \&amp; a < b & c"),
        ("# a", r"\# a"),
        ("- a", r"\- a"),
        ("1. a", r"1\. a"),
        ("> a", r"\> a"),
        ("1.5 -a #a", "1.5 -a #a"),
        ("a | b ~~c~~", r"a \| b \~~c\~~"),
    ],
)
def test_only_what_would_be_markup_is_escaped(text: str, expected: str) -> None:
    assert escape(text) == expected
