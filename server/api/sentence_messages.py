"""Writes the sentences of answers, and what stands in them, into messages."""

from collections.abc import Iterable, Sequence

from babelserve.v1 import translation_pb2 as pb
from server.api.term_messages import sentence_term_messages
from server.decoding.result import FinishReason, SearchNode
from server.text.masked import KeptPart, Placement
from server.translation.answer import TextAnswer, Token, TranslatedSentence
from server.translation.partial import Partial

FINISH_REASONS = {
    FinishReason.STOP: pb.FINISH_REASON_STOP,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.COPIED: pb.FINISH_REASON_COPIED,
    FinishReason.REPETITION: pb.FINISH_REASON_REPETITION,
}
_PLACEMENTS = {
    Placement.BY_MODEL: pb.PLACEMENT_BY_MODEL,
    Placement.BY_POSITION: pb.PLACEMENT_BY_POSITION,
    Placement.MISSING: pb.PLACEMENT_MISSING,
}


def sentence_messages(answer: TextAnswer, output: pb.OutputOptions) -> list[pb.Sentence]:
    """Returns the sentences of a whole text in reading order; none unless the request asks for them."""
    if not (output.include_sentences or output.include_alignment or output.include_tokens or output.include_search):
        return []
    texts = answer.shown_texts()
    begins = answer.split.begins(texts)
    return [
        sentence_message(answer.sentences[index], text, answer.source_begin(index), begins[index], output)
        for index, text in enumerate(texts)
    ]


def sentence_message(
    sentence: TranslatedSentence, text: str, source_begin: int, begin: int | None, output: pb.OutputOptions
) -> pb.Sentence:
    """Returns a sentence.

    Args:
        sentence: with its translation.
        text: its translation with its markup.
        source_begin: where it begins in its text, in code points.
        begin: where its translation begins in that of the text; None if that is not whole.
        output: what it is to carry.
    """
    best = sentence.candidates[0]
    return pb.Sentence(
        source_text=sentence.source.text,
        text=text,
        separator=sentence.source.separator,
        score=best.score,
        finish_reason=FINISH_REASONS[best.finish_reason],
        source_tokens=sentence.source.num_tokens,
        target_tokens=best.num_tokens,
        kept=kept_parts(sentence.kept),
        links=[
            pb.Link(
                source_begin=link.source[0],
                source_end=link.source[1],
                target_begin=link.target[0],
                target_end=link.target[1],
                weight=link.weight,
            )
            for link in sentence.links()
        ],
        source_begin=source_begin if sentence.source.markup is None else 0,
        source_end=source_begin + len(sentence.source.text) if sentence.source.markup is None else 0,
        begin=begin or 0,
        end=0 if begin is None else begin + len(text),
        tokens=token_messages(sentence.tokens()) if output.include_tokens else [],
        confidence=sentence.confidence if output.include_confidence else None,
        terms=sentence_term_messages(sentence),
        search=[_node_message(text, node) for text, node in sentence.tree],
    )


def _node_message(text: str, node: SearchNode) -> pb.SearchNode:
    reason = None if node.finish_reason is None else FINISH_REASONS[node.finish_reason]
    return pb.SearchNode(
        parent=node.parent,
        text=text,
        log_prob=node.log_prob,
        score=node.score,
        finish_reason=reason,
        is_chosen=node.is_chosen,
    )


def partial_response(partial: Partial, sentence_count: int) -> pb.TranslateStreamResponse:
    """Returns the response of a stream with what a sentence of a text of so many sentences has so far."""
    text, sentence = partial.place
    return pb.TranslateStreamResponse(
        content_index=text, sentence_index=sentence, sentence_count=sentence_count, partial_text=partial.text
    )


def token_messages(tokens: Sequence[Token]) -> list[pb.Token]:
    """Returns the tokens of a translation."""
    spans = [token.span or (0, 0) for token in tokens]
    return [
        pb.Token(text=token.text, begin=begin, end=end, log_prob=token.log_prob)
        for token, (begin, end) in zip(tokens, spans, strict=True)
    ]


def kept_parts(parts: Iterable[KeptPart]) -> list[pb.KeptPart]:
    """Returns the parts that no model was shown."""
    return [pb.KeptPart(text=part.text, placement=_PLACEMENTS[part.placement]) for part in parts]
