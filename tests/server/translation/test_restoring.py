"""Restored sentences of hand-made attention."""

import numpy as np
import pytest

from server.bundle.tokenizer import Tokenizer
from server.decoding.result import FinishReason, Hypothesis, Result, Timings
from server.text.alignment import find_spans
from server.text.characters import Characters
from server.text.masking import Masker
from server.text.source import SourceSentence
from server.translation.restoring import restore, restore_beginning


@pytest.mark.parametrize(("is_aligned", "expected"), [(True, "*Ein* Hund rennt."), (False, "Ein Hund *rennt*.")])
def test_marks_round_words_follow_the_attention_of_the_best_hypothesis(
    tokenizer: Tokenizer, is_aligned: bool, expected: str
) -> None:
    masker = Masker(carriers=(("%1",),), characters=Characters(lambda _: True), places_pairs=True)
    masked = masker.mask("A dog *runs*.")
    source_ids, ids = tokenizer.encode(masked.text), tokenizer.encode("Ein Hund rennt.")[:-1]
    of_source = find_spans(tokenizer.spell_source(source_ids), masked.text)
    of_target = find_spans(tokenizer.spell_target(ids), "Ein Hund rennt.")
    rows = [index for index, span in enumerate(of_target) if span and span[1] <= len("Ein")]
    runs = [index for index, span in enumerate(of_source) if span and len("A dog ") <= span[0] < len("A dog runs")]
    attention = np.zeros((len(ids), len(source_ids)), np.float32)
    attention[:, -1] = 1.0
    attention[rows] = 0.0
    attention[np.ix_(rows, runs)] = 1.0 / len(runs)
    source = SourceSentence("A dog *runs*.", "", source_ids, masked=masked)
    hypothesis = Hypothesis(ids, -1.0, FinishReason.STOP)

    result = Result((hypothesis, hypothesis), Timings(), attention=attention if is_aligned else None)
    best, second = restore(source, result, tokenizer)

    assert best.text == expected
    assert second.text == "Ein Hund *rennt*."


def test_the_beginning_of_a_translation_has_no_marks_round_words_yet(tokenizer: Tokenizer) -> None:
    masker = Masker(carriers=(("%1",),), characters=Characters(lambda _: True), places_pairs=True)
    masked = masker.mask("A dog *runs*.")
    source = SourceSentence("A dog *runs*.", "", tokenizer.encode(masked.text), masked=masked)

    assert restore_beginning(source, tokenizer.encode("Ein Hund rennt.")[:-1], tokenizer) == "Ein Hund rennt."
