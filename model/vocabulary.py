"""Learns the joint SentencePiece vocabulary of a model (arXiv:1808.06226)."""

import io
import tempfile
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from model.training import Recipe
from model.verbatim import PLACEHOLDER_START


def learn_vocabulary(sentences: Iterable[str], recipe: Recipe) -> bytes:
    """Returns a serialised SentencePiece model of exactly `recipe.model.vocab_size` entries.

    Text is normalised first, as `TokenizerConfig.normalization` says; characters that the vocabulary lacks fall back
    to bytes, so none is lost (but "▁", U+2581, with which SentencePiece writes blanks). The placeholder symbols
    (private-use characters from U+E000) are whole tokens that no other text produces.

    Raises:
        RuntimeError: the text is too small for the vocabulary (SentencePiece's own message).
    """
    model, tokenizer = recipe.model, recipe.tokenizer
    output = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        rules.write_text(invisible_rules(), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=output,
            model_type=tokenizer.model_type,
            vocab_size=model.vocab_size,
            character_coverage=tokenizer.character_coverage,
            required_chars=tokenizer.required_characters,
            split_digits=tokenizer.split_digits,
            byte_fallback=True,
            user_defined_symbols=[chr(PLACEHOLDER_START + i) for i in range(tokenizer.num_placeholders)],
            pad_id=model.pad_id,
            unk_id=model.unk_id,
            bos_id=model.bos_id,
            eos_id=model.eos_id,
            num_threads=1,  # the same vocabulary on every machine
            normalization_rule_tsv=str(rules) if tokenizer.normalization == "invisible" else "",
            minloglevel=1,
        )
    return output.getvalue()


def invisible_rules() -> str:
    """Returns SentencePiece rules for what no reader sees: other white space, control characters, split accents.

    The no-break spaces stay: they stand within numbers and abbreviations, where the translation repeats them. Joiners
    stay: they make emoji. Blanks at the ends and runs of blanks are SentencePiece's own matter.
    """
    blanks = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x205F, 0x3000]
    removed = [
        *range(0x01, 0x09),
        *range(0x0E, 0x20),
        *range(0x7F, 0x85),
        *range(0x86, 0xA0),
        0xAD,
        0x200B,
        0x2060,
        0xFEFF,
    ]
    rules = {chr(code): " " for code in blanks} | {chr(code): "" for code in removed}
    for code in range(0xC0, 0x2000):
        split = unicodedata.normalize("NFD", chr(code))
        if len(split) > 1 and unicodedata.normalize("NFC", split) == chr(code):
            rules[split] = chr(code)
    return "".join(f"{_codes(before)}\t{_codes(after)}\n" for before, after in sorted(rules.items()))


def _codes(text: str) -> str:
    return " ".join(f"{ord(ch):X}" for ch in text)
