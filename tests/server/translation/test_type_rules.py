"""The rules for types of texts, each at its limits and beyond."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.errors import InvalidRequest
from server.text.markup.document import Read, unwatched
from server.text.markup.html import read_html
from server.text.markup.tag_rules import TagRules
from server.translation.request import TextOptions, TranslationRequest
from server.translation.type_rules import check_partial_text, check_type, choose_reader

SECRET = "secret text"


def mime_type(name: str, num_hypotheses: int = 1, **wishes: Any) -> Read | None:
    request = TranslationRequest(contents=[], arrived=0.0, deadline=1.0, mime_type=name, **wishes)
    return choose_reader(request, num_hypotheses)


def xml_tags(ignored: Iterable[str]) -> Read | None:
    return mime_type("application/xml", text=TextOptions(tags=TagRules(frozenset(ignored))))


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (lambda: mime_type("text/rtf"), ["mime_type", "text/plain", "text/html", "text/rtf"]),
        (lambda: mime_type(SECRET), ["mime_type", "text/plain", "11 characters"]),
        (lambda: mime_type("text/html", 2), ["decoding.num_hypotheses", "must be 1", "text/html", "2"]),
        (lambda: mime_type("text/html", with_alignment=True), ["output.include_alignment", "text/html"]),
        (lambda: mime_type("text/html", with_tokens=True), ["output.include_tokens", "text/html"]),
        (
            lambda: mime_type("text/markdown", text=TextOptions(translate_attributes=True)),
            ["text.translate_attributes", "must be false", "text/html"],
        ),
        (lambda: mime_type("text/html", text=TextOptions(join_lines=True)), ["text.join_lines", "must be false"]),
        (lambda: mime_type("", 2, text=TextOptions(join_lines=True)), ["decoding.num_hypotheses", "text.join_lines"]),
        (lambda: mime_type("", text=TextOptions(tags=TagRules(frozenset("a")))), ["text.tags", "application/xml"]),
        (
            lambda: mime_type("text/html", text=TextOptions(tags=TagRules(splitting=frozenset("a")))),
            ["text.tags", "must be empty", "text/html"],
        ),
        (lambda: xml_tags(map(str, range(101))), ["text.tags.ignored", "0 to 100 names", "101"]),
        (lambda: xml_tags(["a" * 101]), ["text.tags.ignored", "0 to 100 characters each", "101"]),
        (lambda: mime_type("text/html", with_partial_text=True), ["include_partial_text", "text/html"]),
        (
            lambda: mime_type("", with_partial_text=True, text=TextOptions(join_lines=True)),
            ["include_partial_text", "text.join_lines"],
        ),
        (lambda: check_type("text/rtf"), ["mime_type", "text/rtf"]),
    ],
)
def test_what_a_type_excludes_is_refused(rule: Callable[[], object], named: Sequence[str]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        rule()

    assert all(each in str(caught.value) for each in named)
    assert SECRET not in str(caught.value)


def test_partial_texts_need_a_greedy_search() -> None:
    request = TranslationRequest(contents=[], arrived=0.0, deadline=1.0, with_partial_text=True)

    check_partial_text(request, DecodingOptions(beam_size=1))
    with pytest.raises(InvalidRequest, match=r"include_partial_text: needs a decoding\.beam_size of 1, not 2"):
        check_partial_text(request, DecodingOptions(beam_size=2))


@pytest.mark.parametrize("name", ["", "text/plain"])
def test_plain_text_need_not_be_named(name: str) -> None:
    assert mime_type(name, 4, with_alignment=True) is None


def test_documents_with_markup_have_a_reader() -> None:
    assert mime_type("text/html") is read_html


def test_attributes_are_texts_if_that_is_asked_for() -> None:
    read = mime_type("text/html", text=TextOptions(translate_attributes=True))

    assert read is not None
    assert [block.text for block in read('<img alt="A dog">', unwatched).blocks] == ["A dog"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("text/html", "<p>A <x-1>b</x-1> c", "<x-1>b</x-1>"),
        ("application/xml", "<p>A <x-1>b</x-1> c</p>", "<x-1>b</x-1>"),
    ],
)
def test_ignored_elements_are_kept(name: str, text: str, expected: str) -> None:
    read = mime_type(name, text=TextOptions(tags=TagRules(frozenset({"x-1"}))))

    assert read is not None
    (block,) = read(text, unwatched).blocks
    assert list(block.kept.values()) == [expected]


def test_lines_of_plain_text_are_joined_if_that_is_asked_for() -> None:
    read = mime_type("", text=TextOptions(join_lines=True))

    assert read is not None
    assert [block.text for block in read("A\ndog.\n\nA cat.", unwatched).blocks] == ["A dog.", "A cat."]
