"""Writes the page: one file of HTML, with its own styles and script, that loads nothing."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from babelserve.explanation.tree import said, shown_number, tree
from babelserve.explanation.words import row, texts_of, words_of
from babelserve.lines import TranslatedLine
from babelserve.results import FinishReason, Placement, Sentence, Translation

_ENDS = {
    FinishReason.STOP: "the model ended it",
    FinishReason.LENGTH: "<span class='warn'>cut off by the limit on tokens</span>",
    FinishReason.COPIED: "copied: there was nothing to translate",
    FinishReason.REPETITION: "<span class='warn'>cut off, because it repeated itself</span>",
}
_PLACES = {
    Placement.BY_MODEL: "by the model",
    Placement.BY_POSITION: "about where the source has it",
    Placement.MISSING: "may be wrong or missing",
}
# Hypotheses of a sentence that are listed, of which most searches have some dozens. With half of it, some would be left
# out that wide beams find. With twice as many, hypotheses as long as an answer may be would take twice the memory.
_MOST_LISTED = 100
_HEADS = """Words light up by the model's attention: the mean of the heads that show best which words belong together.
A server does not send single heads; <code>babelserve-evaluate --heads</code> measures each head of a model."""


def page(lines: Sequence[TranslatedLine], target: str, source: str | None = None) -> str:
    """Returns the page.

    Args:
        lines: translated with the options that `wishes` names.
        target: code of the language that was translated into.
        source: code of the other language; None if it is not known.
    """
    style, script = (_part(name) for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    models = dict.fromkeys(f"{line.model} {line.model_version}".strip() for line in lines)
    cards = [_text(number, line, source, target) for number, line in enumerate(lines, start=1)]
    sentences = [sentence for line in lines for sentence in line.translation.sentences]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>Why these translations?</title>
<style>{style}</style>
</head>
<body>
<h1>Why these translations?</h1>
<p class="dim">By {escape(", ".join(filter(None, models)) or "no model")}.</p>
<p id="how">Point at a word, or come to a sentence with Tab and move with the arrow keys: the words that it stands for
light up.</p>
<p>The model was less sure of <span class="u1">this</span>, <span class="u2">this</span> and
<span class="u3">this</span> (a probability below 80, 50 and 20 %). <span class="t">This</span> is a term of the
glossary.</p>
{_lacks(sentences)}<main>
{"".join(cards)}</main>
<footer><p>{_HEADS}</p></footer>
<script>{script}</script>
</body>
</html>
"""


def _part(name: str) -> str:
    return resources.files("babelserve.explanation").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _lacks(sentences: Iterable[Sentence]) -> str:
    """Says what no sentence has, although it was asked for."""
    translated = [sentence for sentence in sentences if sentence.tokens]
    lacking = {
        "which words belong together": any(sentence.links for sentence in translated),
        "how sure the model was of sentences": any(sentence.confidence is not None for sentence in translated),
        "how the translations were searched for": any(sentence.search for sentence in translated),
    }
    missing = [what for what, is_there in lacking.items() if not is_there]
    return f'<p class="warn">The server does not say {"; nor ".join(missing)}.</p>\n' if missing else ""


def _text(number: int, line: TranslatedLine, source: str | None, target: str) -> str:
    translation = line.translation
    heading = f"<h2>Text {number}</h2>\n"
    if translation.error is not None:
        return f'{heading}<p class="warn">It has no translation: {escape(translation.error.message)}</p>\n'
    pairs = [_pair(sentence, source, target) for sentence in translation.sentences]
    return f"{heading}{_facts_of_text(translation)}{''.join(pairs)}{_others(translation)}"


def _facts_of_text(translation: Translation) -> str:
    facts = []
    if translation.route:
        facts.append("over " + " and ".join(f"{leg.model} ({leg.source} to {leg.target})" for leg in translation.route))
    if translation.detected is not None:
        facts.append(f"detected language: {translation.detected.code}")
    if not translation.sentences:
        facts.append("it has no sentence")
    return f'<p class="facts">{escape("; ".join(facts))}</p>\n' if facts else ""


def _others(translation: Translation) -> str:
    """Lists the other hypotheses of a text, if there are some."""
    others = [each for each in translation.hypotheses if each.text != translation.text]
    items = [f"<li>{shown_number(each.score)} {escape(each.text)}</li>" for each in others]
    return f"<details><summary>Other translations</summary><ol>{''.join(items)}</ol></details>\n" if items else ""


def _pair(sentence: Sentence, source: str | None, target: str) -> str:
    sources, targets = words_of(sentence)
    before = row(sentence.source_text, sources, texts_of(sentence.text, targets))
    after = row(sentence.text, targets, texts_of(sentence.source_text, sources))
    focus = 'tabindex="0" dir="auto" role="group" aria-describedby="how"'
    code = f' lang="{escape(source)}"' if source else ""
    return f"""<section class="pair">
<p class="words source" aria-label="Source" {focus}{code}>{before}</p>
<p class="words target" aria-label="Translation" {focus} lang="{escape(target)}">{after}</p>
<p class="say" aria-live="polite"></p>
<p class="facts">{"; ".join(_facts(sentence))}</p>
{_search(sentence)}</section>
"""


def _facts(sentence: Sentence) -> list[str]:
    facts = []
    if sentence.confidence is not None:
        meter = f'<meter min="0" max="1" value="{sentence.confidence:.2f}"></meter>'
        facts.append(f"confidence {sentence.confidence:.2f} {meter}")
    if sentence.tokens:
        facts.append(f"score {shown_number(sentence.score)}")
    facts.append(_ENDS.get(sentence.finish_reason, "it does not say why it ended"))
    for term in sentence.terms:
        done = f"became {term.target}" if term.is_applied else "is missing in the translation"
        facts.append(f"term {escape(term.source)} {escape(done)}")
    facts += [f"kept {escape(part.text)}: {_PLACES.get(part.placement, 'somehow')}" for part in sentence.kept]
    return facts


def _search(sentence: Sentence) -> str:
    nodes = sentence.search
    if not nodes:
        return ""
    ended = [(node.score, index) for index, node in enumerate(nodes) if node.score is not None]
    rows = [
        f"<tr{' class=p' if nodes[index].is_chosen else ''}><td>{shown_number(score)}</td>"
        f"<td>{escape(said(nodes, index))}</td><td>{_ENDS.get(nodes[index].finish_reason, '')}</td></tr>"
        for score, index in sorted(ended, key=lambda each: -each[0])[:_MOST_LISTED]
    ]
    if len(ended) > _MOST_LISTED:
        rows.append(f"<tr><td></td><td>and {len(ended) - _MOST_LISTED} more with lower scores</td><td></td></tr>")
    return f"""<details><summary>How it was found: {len(nodes)} tokens tried, {len(ended)} ended translations</summary>
<p class="dim">Each line is a beginning that the search went on with; the bold one became the translation. The numbers
are sums of log-probabilities, at the end the score. A + belongs to the word before it.</p>
<div class="tree" tabindex="0" role="region" aria-label="Tree of the search">{tree(nodes)}</div>
<table><tr><th>Score</th><th>Translation</th><th>Its end</th></tr>{"".join(rows)}</table>
</details>
"""
