"""The types of documents whose markup is understood."""

import functools
from collections.abc import Callable, Mapping

from server.text.markup.document import Document
from server.text.markup.html import read_html
from server.text.markup.markdown import read_markdown
from server.text.markup.xliff import read_xliff

HTML = "text/html"
READERS: Mapping[str, Callable[[str], Document]] = {
    HTML: read_html,
    "text/markdown": read_markdown,
    "application/xliff+xml": read_xliff,
}
read_html_with_attributes = functools.partial(read_html, with_attributes=True)
