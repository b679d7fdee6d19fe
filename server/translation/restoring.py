"""What the ids of a translation read, with all that its model was not shown."""

from collections.abc import Sequence
from dataclasses import replace

from server.bundle.tokenizer import Tokenizer
from server.decoding.result import Result
from server.text.alignment import weigh_words
from server.text.carriers import clean
from server.text.casing import begun
from server.text.full_stops import end_like
from server.text.garbled import is_garbled
from server.text.masked import Restored
from server.text.pairs import with_pairs
from server.text.source import SourceSentence
from server.translation.prefixes import restored_behind


def restore_beginning(source: SourceSentence, ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """Returns the text of the first ids of a translation, with the parts of the source that it has so far."""

    def restored(text: str) -> Restored:
        return Restored(source.masked.restore_beginning(text) if source.masked else begun(source.text, clean(text)))

    return restored_behind(source.prefix, ids, tokenizer, restored).text


def restore(source: SourceSentence, result: Result, tokenizer: Tokenizer) -> list[Restored]:
    """Returns the text of each hypothesis, best first, and puts back what the model was not shown."""

    def restored_text(text: str) -> Restored:
        if source.masked:
            return source.masked.restore(text)
        return Restored(end_like(source.text, begun(source.text, clean(text))))

    texts = [tokenizer.decode(hypothesis.ids) for hypothesis in result.hypotheses]
    if source.prefix is None:
        restored = [restored_text(text) for text in texts]
    else:
        restored = [restored_behind(source.prefix, each.ids, tokenizer, restored_text) for each in result.hypotheses]
    if source.masked is not None and source.masked.pairs:
        bare, words = source.masked.original, None
        if result.attention is not None:
            pieces = tokenizer.spell_source(source.source_ids or ()), tokenizer.spell_target(result.hypotheses[0].ids)
            words = weigh_words(bare, pieces[0], restored[0].text, pieces[1], result.attention)
        ranked = zip(restored, [words, *[None] * len(restored)], strict=False)  # the best one alone is aligned
        restored = [with_pairs(each, bare, source.masked.pairs, own) for each, own in ranked]
    if source.given is None and is_garbled(source.text, texts[0]):
        restored[0] = replace(restored[0], is_garbled=True)
    return restored
