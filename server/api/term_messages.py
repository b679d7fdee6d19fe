"""Reads glossaries from messages, and writes the terms of texts into messages."""

from collections.abc import Sequence

from babelserve.v1 import translation_pb2 as pb
from server.text.glossary import MAX_NAMES, MAX_TERMS, Glossary, NamedGlossary, compile_glossary
from server.text.term_table import MAX_FORMS, Term
from server.translation.answer import TextAnswer, TranslatedSentence
from server.translation.legs import Leg
from server.translation.rules import check_range


def read_glossary(glossary: pb.Glossary) -> Glossary | None:
    """Returns the glossary of a message, its names not resolved; None if it has neither terms nor names.

    Raises:
        InvalidRequest: it breaks a rule.
    """
    check_range("glossary.terms", len(glossary.terms), 0, MAX_TERMS)
    check_range("glossary.names", len(glossary.names), 0, MAX_NAMES)
    terms = tuple(_read_term(f"glossary.terms[{index}]", term) for index, term in enumerate(glossary.terms))
    return compile_glossary(terms, glossary.ignore_case, tuple(glossary.names))


def _read_term(field: str, term: pb.Term) -> Term:
    check_range(f"{field}.source_forms", len(term.source_forms), 0, MAX_FORMS - 1)
    check_range(f"{field}.target_forms", len(term.target_forms), 0, MAX_FORMS - 1)
    targets = (term.target, *term.target_forms)
    return Term((term.source, *term.source_forms), targets * 2 if term.exact and len(targets) == 1 else targets)


def used_glossaries(legs: Sequence[Leg]) -> list[pb.UsedGlossary]:
    """Returns the server's glossaries that a text was translated with."""
    glossary = legs[-1].glossary if legs else None
    return [pb.UsedGlossary(name=each.name, version=each.version) for each in (glossary.named if glossary else ())]


def glossary_info(glossary: NamedGlossary) -> pb.GlossaryInfo:
    """Returns the description of a glossary."""
    return pb.GlossaryInfo(
        name=glossary.name,
        source_language_code=glossary.source,
        target_language_code=glossary.target,
        num_terms=glossary.table.num_terms,
        version=glossary.version,
    )


def term_messages(answer: TextAnswer) -> list[pb.UsedTerm]:
    """Returns the terms of a text in its order."""
    sentences = answer.in_order()
    if not any(sentence.source.terms for sentence in sentences):
        return []
    if sentences[0].source.markup is not None:  # then terms have no places
        return [message for sentence in sentences for message in sentence_term_messages(sentence)]
    begins = answer.split.begins(answer.shown_texts())
    return [
        message
        for index, sentence in enumerate(sentences)
        for message in sentence_term_messages(sentence, answer.source_begin(index), begins[index])
    ]


def sentence_term_messages(sentence: TranslatedSentence, source_begin: int = 0, begin: int = 0) -> list[pb.UsedTerm]:
    """Returns the terms of a sentence that begins there in its text, and its translation there in that of the text."""
    text, has_places = sentence.candidates[0].text, sentence.source.markup is None
    messages = []
    for used in sentence.terms:
        is_applied = used.span is not None
        start, end = used.span or (0, 0)
        message = pb.UsedTerm(
            source=used.found.term.sources[0],
            target=text[start:end],
            status=pb.TERM_STATUS_APPLIED if is_applied else pb.TERM_STATUS_MISSED,
        )
        if has_places:
            message.source_begin, message.source_end = source_begin + used.found.start, source_begin + used.found.end
        if has_places and is_applied:
            message.begin, message.end = begin + start, begin + end
        messages.append(message)
    return messages
