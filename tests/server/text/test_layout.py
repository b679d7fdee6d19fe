"""Tests of what parts the texts of programs."""

import pytest

from server.text.layout import Syntax, has_syntax, part_code, part_line, part_messages


def syntax(line: str) -> list[str]:
    pieces = list(part_line(line))
    assert "".join(pieces) == line
    return [piece for piece in pieces if isinstance(piece, Syntax)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("```python", ["```python"]),
        ("~~~", ["~~~"]),
        ("| Name | Age |", ["|", "|", "|"]),
        ("|Name|Age|", ["|", "|", "|"]),
        ("Home | News | About", ["|", "|"]),
        ("Hi<br/>there <BR>", ["<br/>", "<BR>"]),
        ("<p class='a'>The</p> <p>", ["<p class='a'>", "</p> <p>"]),
        (r"First line\nSecond line\tThird", [r"\n", r"\t"]),
        (r"Out of\nmemory!\n\n", [r"\n", r"\n\n"]),
        ("{% if a %}Hello, {{ b }}!{% else %}Hi{% endif %}", ["{% if a %}", "{% else %}", "{% endif %}"]),
        ("<% if x > 5 %>Hi{{#each}}Ho{{else}}Hu{{/each}}", ["<% if x > 5 %>", "{{#each}}", "{{else}}", "{{/each}}"]),
        ("<%- end -%>A<%- else %>B<%- if x %>C", ["<%- end -%>", "<%- else %>", "<%- if x %>"]),
        ("<%= link a do %>A<%= f do |b| %>B<% end %>", ["<%= link a do %>", "<%= f do |b| %>", "<% end %>"]),
        ("00:01:02,345 --> 00:01:04,567 align:start", ["00:01:02,345 --> 00:01:04,567 align:start"]),
        ("01:02.345 --> 01:04.567", ["01:02.345 --> 01:04.567"]),
        ("WEBVTT", ["WEBVTT"]),
    ],
)
def test_syntax_is_found(line: str, expected: list[str]) -> None:
    assert syntax(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "The house is old.",
        "Either a | or b",
        "a < b and p > q, x --> y",
        "He read <b>the</b> book to <person>.",
        r"Open C:\new\test or press \n to go on",
        r"The \textbf{word} and \new",
        "Hello {name}, {{ x }} ```code```",
        "Hello <%= a.b(c) -%>, you have <%- count %> of <%=x%>",
    ],
)
def test_everything_else_is_none(line: str) -> None:
    assert syntax(line) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run:\n```py\nx = 1\n\ny\n```\nDone", ["```py\nx = 1\n\ny\n```"]),
        ("  ````\n```\n````  \r\nA\n```\nB\n``` \r\n", ["  ````\n```\n````  \r", "```\nB\n``` \r"]),
        ("```\nA\n```py\nB\n```", ["```\nA\n```py\nB\n```"]),
        ("```\nA text", []),
        ("```\nA\n    ```\nB\n\t```\n   ```\nC", ["```\nA\n    ```\nB\n\t```\n   ```"]),
        ("    ```\nA\n```\nB\n", ["    ```\nA\n```"]),
        ("Run:\n~~~js\nlet a\n```\nb\n~~~~\nDone", ["~~~js\nlet a\n```\nb\n~~~~"]),
        ("A title\n~~~~~\nThe text\n~~~~~", []),
        ("Use ```a``` and\n```b```\n~~~\nA title\n~~~", []),
    ],
)
def test_code_between_fences_is_syntax(text: str, expected: list[str]) -> None:
    pieces = list(part_code(text))

    assert "".join(pieces) == text
    assert [piece for piece in pieces if isinstance(piece, Syntax)] == expected


def test_a_message_is_parted_within_a_text() -> None:
    pieces = list(part_messages("Now {n, plural, other {# cats}}!"))

    assert pieces == ["Now ", "{n, plural, other {", "# cats", "}}", "!"]
    assert [isinstance(piece, Syntax) for piece in pieces] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("text", "expected"), [("The house - it's old; 5 > 4", True), ("It's old; 5%: [a] (b)", False)]
)
def test_few_texts_may_have_syntax(text: str, expected: bool) -> None:
    assert has_syntax(text) is expected
