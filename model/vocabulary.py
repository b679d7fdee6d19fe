"""Learns the joint SentencePiece vocabulary of a model (arXiv:1808.06226)."""

import io
from collections.abc import Iterable

import sentencepiece

from model.augment import PLACEHOLDER_START
from model.config import Recipe


def learn_vocabulary(sentences: Iterable[str], recipe: Recipe) -> bytes:
    """Returns a serialised SentencePiece model of exactly `recipe.model.vocab_size` entries.

    Text is normalised first (SentencePiece's "nmt_nfkc": NFKC, without control characters); characters that the
    vocabulary lacks fall back to bytes, so none is lost. The placeholder symbols (private-use characters from U+E000)
    are whole tokens that no other text produces.

    Raises:
        RuntimeError: the text is too small for the vocabulary (SentencePiece's own message).
    """
    model, tokenizer = recipe.model, recipe.tokenizer
    output = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=output,
        model_type=tokenizer.model_type,
        vocab_size=model.vocab_size,
        character_coverage=tokenizer.character_coverage,
        byte_fallback=True,
        user_defined_symbols=[chr(PLACEHOLDER_START + i) for i in range(tokenizer.num_placeholders)],
        pad_id=model.pad_id,
        unk_id=model.unk_id,
        bos_id=model.bos_id,
        eos_id=model.eos_id,
        num_threads=1,  # the same vocabulary on every machine
        minloglevel=1,
    )
    return output.getvalue()
