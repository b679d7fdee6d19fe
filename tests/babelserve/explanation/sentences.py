"""A sentence as a server answers it, and a reader of pages."""

from html.parser import HTMLParser
from typing import Any

from babelserve.lines import TranslatedLine
from babelserve.results import FinishReason, Link, SearchNode, Sentence, Token, Translation
from babelserve.terms import UsedTerm

VOID = {"meta"}


def sentence(**fields: Any) -> Sentence:
    given = {
        "source_text": "A <b> dog runs.",
        "text": "Ein Hund läuft.",
        "separator": "",
        "score": -0.5,
        "finish_reason": FinishReason.STOP,
        "source_tokens": 5,
        "target_tokens": 4,
        "links": (link(0, 1, 0, 3, 0.75), link(6, 9, 4, 8, 0.5), link(10, 14, 9, 14, 0.25), link(0, 1, 4, 8, 0.25)),
        "tokens": (
            token("\u2581Ein", 0, 3, -0.125),
            token("\u2581Hun", 4, 7, -0.5),
            token("d", 7, 8, -0.5),
            token("\u2581läuft", 9, 14, -2.0),
            token(".", 14, 15, 0.0),
            token("", 0, 0, -0.25),
        ),
        "confidence": 0.75,
        "terms": (
            UsedTerm(source="dog", target="Hund", source_begin=6, source_end=9, begin=4, end=8, is_applied=True),
            UsedTerm(source="runs", target="", source_begin=10, source_end=14, begin=0, end=0, is_applied=False),
        ),
        "search": (
            node(None, "\u2581Ein", -0.125, is_chosen=True),
            node(None, "\u2581Der", -2.0),
            node(0, "\u2581Hund", -1.125, is_chosen=True),
            node(0, "\u2581Kater", -3.0),
            node(2, "", -1.5, score=-0.5, is_chosen=True),
            node(3, "", -4.5, score=-1.5),
        ),
    }
    return Sentence(**{**given, **fields})


def link(*numbers: Any) -> Link:
    names = "source_begin", "source_end", "target_begin", "target_end", "weight"
    return Link(**dict(zip(names, numbers, strict=True)))


def token(text: str, begin: int, end: int, log_prob: float) -> Token:
    return Token(text=text, begin=begin, end=end, log_prob=log_prob)


def node(
    parent: int | None, text: str, log_prob: float, *, score: float | None = None, is_chosen: bool = False
) -> SearchNode:
    reason = FinishReason.UNSPECIFIED if score is None else FinishReason.STOP
    return SearchNode(
        parent=parent, text=text, log_prob=log_prob, score=score, finish_reason=reason, is_chosen=is_chosen
    )


def line(*sentences: Sentence, **fields: Any) -> TranslatedLine:
    given = {
        "text": " ".join(each.text for each in sentences),
        "score": -0.5,
        "finish_reason": FinishReason.STOP,
        "hypotheses": (),
        "sentences": sentences,
        "source_tokens": 5,
        "target_tokens": 4,
        "error": None,
    }
    translation = Translation(**{**given, **fields})
    return TranslatedLine(translation=translation, num_bytes=1, model="en-de", model_version="2.3")


class Reader(HTMLParser):
    """Reads a page as a browser does, and fails if its tags are not nested.

    Attributes:
        elements: each tag with its attributes, in order.
        texts: the text of the page, by the tag that it stands in.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def all_of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def words(self) -> list[dict[str, str | None]]:
        return [each for each in self.all_of("span") if "data-say" in each]
