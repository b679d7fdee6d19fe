"""The rules for what texts are: their type, and how their elements and lines are read."""

from server.decoding.options import DecodingOptions
from server.errors import InvalidRequest
from server.text.markup.document import Read
from server.text.markup.readers import HTML, TYPES, XML, reader_of, reader_of_lines
from server.text.markup.tag_rules import NO_RULES, TagRules
from server.translation.request import TranslationRequest
from server.translation.rules import MAX_PHRASE_CHARACTERS, MAX_PHRASES, check_range, shown


def check_type(mime_type: str) -> None:
    """Checks that a type of texts is one that is read. Raises InvalidRequest."""
    if mime_type not in ("", "text/plain", *TYPES):
        raise InvalidRequest("mime_type", f"must be one of text/plain, {', '.join(TYPES)}, not {shown(mime_type)}")


def choose_reader(request: TranslationRequest, num_hypotheses: int) -> Read | None:
    """Returns what reads the texts of a request, None for plain ones.

    Tags are placed in one translation alone, and positions of words would not be those of a text with tags.

    Raises:
        InvalidRequest: the type is unknown, or it has markup and the request asks for what markup excludes.
    """
    mime_type = request.mime_type
    if request.text.translate_attributes and mime_type != HTML:
        raise InvalidRequest("text.translate_attributes", f"must be false unless mime_type is {HTML}")
    check_type(mime_type)
    _check_tags(request.text.tags, mime_type)
    is_plain = mime_type not in TYPES
    if request.text.join_lines and not is_plain:
        raise InvalidRequest("text.join_lines", "must be false unless mime_type is text/plain")
    if is_plain and not request.text.join_lines:
        return None
    layout = "text.join_lines" if is_plain else mime_type
    if request.with_partial_text:
        raise InvalidRequest("include_partial_text", f"must be false with {layout}")
    if num_hypotheses > 1:
        raise InvalidRequest("decoding.num_hypotheses", f"must be 1 with {layout}, not {num_hypotheses}")
    for name, is_asked in (("alignment", request.with_alignment), ("tokens", request.with_tokens)):
        if is_asked:
            raise InvalidRequest(f"output.include_{name}", f"must be false with {layout}")
    if is_plain:
        return reader_of_lines()
    return reader_of(mime_type, with_attributes=request.text.translate_attributes, rules=request.text.tags)


def _check_tags(tags: TagRules, mime_type: str) -> None:
    """Checks that rules for tags are of a type that has them, and few. Raises InvalidRequest."""
    if tags == NO_RULES:
        return
    if mime_type != XML and not (mime_type == HTML and tags == TagRules(ignored=tags.ignored)):
        message = f"must be empty unless mime_type is {XML}; with {HTML} it may have `ignored`"
        raise InvalidRequest("text.tags", message)
    for name in ("ignored", "splitting", "non_splitting"):
        names: frozenset[str] = getattr(tags, name)
        check_range(f"text.tags.{name}", len(names), 0, MAX_PHRASES, " names")
        check_range(f"text.tags.{name}", max(map(len, names), default=0), 0, MAX_PHRASE_CHARACTERS, " characters each")


def check_partial_text(request: TranslationRequest, options: DecodingOptions) -> None:
    """Raises InvalidRequest if a request asks for partial texts of another search than a greedy one."""
    if request.with_partial_text and options.beam_size > 1:
        raise InvalidRequest("include_partial_text", f"needs a decoding.beam_size of 1, not {options.beam_size}")
