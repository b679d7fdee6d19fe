"""The formats of files by their names, as `babelserve-translate --format` takes them."""

from collections.abc import Callable, Mapping
from functools import partial

from babelserve.formats.document import Document, read_whole
from babelserve.formats.docx import read_docx
from babelserve.formats.epub import read_epub
from babelserve.formats.json_strings import read_json
from babelserve.formats.odt import read_odt
from babelserve.formats.plain import read_text
from babelserve.formats.po import read_po
from babelserve.formats.pptx import read_pptx
from babelserve.formats.subtitles import read_srt, read_vtt
from babelserve.formats.xliff import read_xliff
from babelserve.formats.xlsx import read_xlsx

# Each takes the bytes of a file, and raises `BadFile`.
READERS: Mapping[str, Callable[[bytes], Document]] = {
    "text": read_text,
    "html": partial(read_whole, mime_type="text/html"),
    "markdown": partial(read_whole, mime_type="text/markdown"),
    "xliff": read_xliff,
    "po": read_po,
    "json": read_json,
    "srt": read_srt,
    "vtt": read_vtt,
    "docx": read_docx,
    "pptx": read_pptx,
    "xlsx": read_xlsx,
    "odt": read_odt,
    "epub": read_epub,
}
