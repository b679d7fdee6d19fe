"""Results about terms: the terms of a text, the glossaries that translated it, and the glossaries of a server."""

from dataclasses import dataclass

from babelserve.v1 import translation_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedTerm:
    """A term of the glossary that a text or a sentence has; positions count code points, and are 0 with markup.

    Attributes:
        source: As the glossary has it.
        target: As the translation has it; empty if it lacks it.
        source_begin: Where the term begins in the text, or in `Sentence.source_text`.
        source_end: Where it ends there.
        begin: Where its target begins in the translation; 0 if it lacks it.
        end: Where it ends there; 0 if it lacks it.
        is_applied: Whether the translation has it.
    """

    source: str
    target: str
    source_begin: int
    source_end: int
    begin: int
    end: int
    is_applied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedGlossary:
    """A glossary of the server that a text was translated with; `version` is as in `GlossaryInfo`."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GlossaryInfo:
    """A glossary that the server has loaded from a file.

    Attributes:
        name: What `glossaries` of `TranslateOptions` may have.
        source: Code of the language that its terms are translated from.
        target: Code of the language that they are translated into.
        num_terms: How many terms it has.
        version: 12 hexadecimal digits that change with the content of its file; equal for equal content.
    """

    name: str
    source: str
    target: str
    num_terms: int
    version: str


def read_terms(message: translation_pb2.Translation | translation_pb2.Sentence) -> tuple[UsedTerm, ...]:
    """Reads the terms that a text has."""
    return tuple(
        UsedTerm(
            source=term.source,
            target=term.target,
            source_begin=term.source_begin,
            source_end=term.source_end,
            begin=term.begin,
            end=term.end,
            is_applied=term.status == translation_pb2.TERM_STATUS_APPLIED,
        )
        for term in message.terms
    )


def read_glossaries(
    message: translation_pb2.TranslateResponse
    | translation_pb2.TranslateStreamResponse
    | translation_pb2.TranslateBulkResponse,
) -> tuple[UsedGlossary, ...]:
    """Reads the glossaries that an answer was made with; an older server names none."""
    return tuple(UsedGlossary(name=each.name, version=each.version) for each in message.glossaries)


def glossary_infos(response: translation_pb2.ListGlossariesResponse) -> tuple[GlossaryInfo, ...]:
    """Reads the answer to ListGlossaries."""
    return tuple(
        GlossaryInfo(
            name=each.name,
            source=each.source_language_code,
            target=each.target_language_code,
            num_terms=each.num_terms,
            version=each.version,
        )
        for each in response.glossaries
    )
