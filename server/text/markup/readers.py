"""The types of documents whose markup is understood."""

from collections.abc import Mapping

from server.text.markup.document import Read
from server.text.markup.html import read_html
from server.text.markup.markdown import read_markdown
from server.text.markup.xliff import read_xliff

READERS: Mapping[str, Read] = {
    "text/html": read_html,
    "text/markdown": read_markdown,
    "application/xliff+xml": read_xliff,
}
