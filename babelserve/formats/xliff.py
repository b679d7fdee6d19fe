"""XLIFF: the server takes the file whole, and the client writes in which language its targets are.

XLIFF 1.2 says that in `target-language` of each `<file>`, and XLIFF 2 in `trgLang` of `<xliff>`, where targets need it.
"""

import re

from babelserve.formats.document import Document, Standing, Unit, decoded, one_text, read_whole

XLIFF = "application/xliff+xml"
_TAG = re.compile(r"""<(?:[\w.-]+:)?(?P<name>xliff|file)(?=[\s>])(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>""")
_OLD_VERSION = re.compile(r"""\sversion\s*+=\s*+["']1""")
_LANGUAGES = {
    "file": ("target-language", re.compile(r"""\starget-language\s*+=\s*+["']([^"'<>]*+)""")),
    "xliff": ("trgLang", re.compile(r"""\strgLang\s*+=\s*+["']([^"'<>]*+)""")),
}


def read_xliff(data: bytes) -> Document:
    """Reads XLIFF in UTF-8: one text, and a place in it for each name of its language. Raises BadFile."""
    document, text = read_whole(data, XLIFF), decoded(data)
    tags = list(_TAG.finditer(text))
    name = "file" if tags and _OLD_VERSION.search(tags[0][0]) else "xliff"
    key, pattern = _LANGUAGES[name]

    def language(tag: re.Match[str]) -> Unit:
        if found := pattern.search(text, tag.start(), tag.end()):
            return Unit(None, *found.span(1))
        return Unit(None, tag.end("name"), tag.end("name"), lambda target, standing: f' {key}="{target}"')

    def rendered(translation: str, standing: Standing) -> str | None:
        """Puts the tags, which the server leaves as they are, with their languages into its translation."""
        if [tag[0] for tag in _TAG.finditer(translation)] != [tag[0] for tag in tags]:
            return None
        own = iter(tags)
        return _TAG.sub(lambda tag: standing(*next(own).span()), translation)

    languages = [language(tag) for tag in tags if tag["name"] == name]
    return one_text(XLIFF, text, [Unit(text, 0, len(text), rendered), *languages]) if document.texts else document
