"""Learns the joint SentencePiece vocabulary of a model (arXiv:1808.06226), and says whether one fits a recipe."""

import io
import re
import tempfile
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from model.recipe import Recipe
from model.verbatim import PLACEHOLDER_START

# In place of one character or of the unknown token. Half of it refuses Unicode's own compatibility forms, of which one
# has 33 bytes. With twice as many, a line of a corpus could take 128 MB. The server has the same bound
# (server.bundle.sentence_pieces).
_MAX_WRITTEN_BYTES = 64
# What SentencePiece says where the size does not fit the text.
_TOO_LARGE = re.compile(r"too high .* <= (\d+)")
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def learn_vocabulary(sentences: Iterable[str], recipe: Recipe) -> bytes:
    """Returns a serialised SentencePiece model of exactly `recipe.model.vocab_size` entries.

    Text is normalised first, as `TokenizerConfig.normalization` says; characters that the vocabulary lacks fall back
    to bytes, so none is lost (but "▁", U+2581, with which SentencePiece writes blanks). The placeholder symbols
    (private-use characters from U+E000) are whole tokens that no other text produces.

    Raises:
        ValueError: the text is too small for the vocabulary, or the vocabulary for the text; says what would fit.
    """
    model, tokenizer = recipe.model, recipe.tokenizer
    output = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        rules.write_text(invisible_rules(), encoding="utf-8")
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=output,
                model_type=tokenizer.model_type,
                vocab_size=model.vocab_size,
                character_coverage=tokenizer.character_coverage,
                required_chars=tokenizer.required_characters,
                split_digits=tokenizer.split_digits,
                byte_fallback=True,
                user_defined_symbols=_placeholders(recipe),
                pad_id=model.pad_id,
                unk_id=model.unk_id,
                bos_id=model.bos_id,
                eos_id=model.eos_id,
                num_threads=1,  # the same vocabulary on every machine
                normalization_rule_tsv=str(rules) if tokenizer.normalization == "invisible" else "",
                minloglevel=1,
            )
        except RuntimeError as error:
            raise ValueError(_explain(str(error), model.vocab_size)) from error
    return output.getvalue()


def open_vocabulary(content: bytes) -> sentencepiece.SentencePieceProcessor:
    """Opens a SentencePiece model. Raises ValueError: it is none, or writes too much in place of a character."""
    found = sentencepiece.SentencePieceProcessor()
    try:
        found.load_from_serialized_proto(content)
    except (OSError, RuntimeError, ValueError):  # the last: its words quote bytes that are no UTF-8
        raise ValueError("is no SentencePiece model") from None
    proto = ModelProto.FromString(content)
    written = [str(proto.trainer_spec.unk_surface).encode()]  # it is bytes where it is no UTF-8
    for spec in (proto.normalizer_spec, proto.denormalizer_spec):
        rules = spec.precompiled_charsmap  # the length of a table, the table, and the texts that it leads to
        written += rules[4 + int.from_bytes(rules[:4], "little") :].split(b"\0")
    if (longest := max(map(len, written))) > _MAX_WRITTEN_BYTES:
        raise ValueError(f"writes {longest} bytes in place of a character, at most {_MAX_WRITTEN_BYTES} are taken")
    return found


def vocabulary_faults(content: bytes, recipe: Recipe) -> list[str]:
    """Says what keeps a SentencePiece model, learned here or elsewhere, from being a recipe's vocabulary.

    Args:
        content: of its file.
        recipe: whose ids and size it must have, and whose placeholders, if pairs are rewritten with them.
    """
    try:
        found = open_vocabulary(content)
    except ValueError as error:
        return [str(error)]
    model = recipe.model
    faults = []
    if found.vocab_size() != model.vocab_size:
        faults.append(f"has {found.vocab_size()} pieces; the recipe's model.vocab_size is {model.vocab_size}")
    special = {"pad": found.pad_id(), "unk": found.unk_id(), "bos": found.bos_id(), "eos": found.eos_id()}
    for name, number in special.items():
        if number != (expected := getattr(model, f"{name}_id")):
            shown = number if number >= 0 else "none"  # SentencePiece's -1
            faults.append(f"its {name} id is {shown}; the recipe's model.{name}_id is {expected}")
    missing = [symbol for symbol in _placeholders(recipe) if found.is_unknown(found.piece_to_id(symbol))]
    if missing and recipe.augmentation.placeholder:
        code, wanted = f"U+{ord(missing[0]):04X}", len(_placeholders(recipe))
        faults.append(f"lacks {code} and others of the recipe's tokenizer.num_placeholders, {wanted}")
    return faults


def _placeholders(recipe: Recipe) -> list[str]:
    return [chr(PLACEHOLDER_START + i) for i in range(recipe.tokenizer.num_placeholders)]


def _explain(words: str, vocab_size: int) -> str:
    """Turns what SentencePiece says, which names its own options, into what a recipe may have."""
    if most := _TOO_LARGE.search(words):
        return f"[model]: vocab_size must be at most {most[1]} for so little text, not {vocab_size}"
    if least := _TOO_SMALL.search(words):
        return (
            f"[model]: vocab_size must be at least {least[1]} for the characters of this text, not {vocab_size}; "
            "a lower character_coverage in [tokenizer] needs less"
        )
    return f"the vocabulary cannot be learned: {words}"


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
