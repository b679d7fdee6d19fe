"""What of a Markdown or PO file does not come back when its texts are translated into themselves, as others read it.

Markdown is compared as markdown-it-py renders it, since marks may be written in another way (`[a]` as `[a][a]`). PO
files are read by polib; their translations are taken out first, and nothing but the strings of these may differ.
"""

import html
import re
from collections.abc import Iterator

import polib

from babelserve.formats.po import read_po
from server.text.markup.markdown import read_markdown
from tests.server.text.markup.identity import identity

_TRANSLATION = re.compile(r'^(msgstr(?:\[\d+\])? *)((?:"(?:[^"\\\n]|\\.)*+"\r?\n?)++)', re.MULTILINE)
_SHOWN = 60  # characters on both sides of a fault


def markdown_fault(data: bytes) -> str | None:
    """Returns where a Markdown file reads otherwise; None if it comes back. Raises ImportError without its reader."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  # nothing else needs it

    text = data.decode("utf-8", "replace")
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    before, after = (_normal(reader.render(each)) for each in (text, identity(read_markdown(text))))
    if before == after:
        return None
    pairs = zip(before, after, strict=False)
    place = next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(before), len(after)))
    start, end = max(0, place - _SHOWN), place + _SHOWN
    return f"{before[start:end]!r} is {after[start:end]!r}"


def _normal(page: str) -> str:
    """Returns a page with single blanks, none beside tags, and with characters for their references."""
    return html.unescape(re.sub(r"\s+", " ", page).replace("> ", ">").replace(" <", "<"))


def po_fault(data: bytes) -> str | None:
    """Returns what of a PO file does not come back; None if all does. Raises BadFile if it is none."""
    text = _without_translations(data.decode())
    document = read_po(text.encode())
    written, unfit = document.write(document.texts, "xx")
    if unfit:
        return f"{document.texts[unfit[0]]!r} is not written"
    if _TRANSLATION.sub(r"\1", text) != _TRANSLATION.sub(r"\1", written.decode()):
        return "something else than a translation differs"
    for entry in polib.pofile(written.decode()):
        sources = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
        for translation in entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr]:
            if translation not in sources and not entry.obsolete and any(map(str.isalpha, entry.msgid)):
                return f"{entry.msgid!r} is {translation!r}"
    return None


def _without_translations(text: str) -> str:
    """Returns a PO file with empty translations, but for its header."""

    def pieces() -> Iterator[str]:
        end = 0
        for number, match in enumerate(_TRANSLATION.finditer(text)):
            yield text[end : match.end(1)]
            yield match[2] if number == 0 else '""' + match[2][len(match[2].rstrip("\r\n")) :]
            end = match.end()
        yield text[end:]

    return "".join(pieces())
