"""SentencePiece models of a few hundred pieces, trained as the makers of the real ones did."""

import io
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2


def train_pieces(
    path: Path, texts: Iterable[str], num_pieces: int, *, model_type: str, rule: str | None = None
) -> sentencepiece.SentencePieceProcessor:
    """Trains a SentencePiece model and writes it to `path`.

    Args:
        path: file to write.
        texts: sentences to learn from.
        num_pieces: size of the vocabulary, with <unk>, <s> and </s>, which are 0, 1 and 2.
        model_type: "unigram" or "bpe".
        rule: a normalisation rule of SentencePiece. None makes one of our own, `_small_rules`: the built-in ones take
            240 KB in every file.

    Returns:
        The model.
    """
    with TemporaryDirectory() as directory:
        rules = Path(directory) / "rules.tsv"
        rules.write_text(_small_rules(), encoding="utf-8")
        normalisation: dict[str, Any] = (
            {"normalization_rule_tsv": str(rules)} if rule is None else {"normalization_rule_name": rule}
        )
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=num_pieces,
            model_type=model_type,
            character_coverage=0.9995,
            num_threads=1,
            minloglevel=2,
            **normalisation,
        )
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def read_proto(path: Path) -> Any:
    """Returns a SentencePiece model as the message `ModelProto`."""
    return sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())  # type: ignore[attr-defined]


def by_frequency(pieces: sentencepiece.SentencePieceProcessor, texts: Iterable[str], drop: int = 0) -> list[str]:
    """Returns the pieces that `texts` are made of, frequent ones first, without the `drop` rarest.

    Vocabularies of Marian and fairseq are made so: from pieces that occur, in an order that is not SentencePiece's.
    """
    counts = Counter(piece for text in texts for piece in pieces.encode(text, out_type=str))
    ranked = sorted((piece for piece in counts), key=lambda piece: (-counts[piece], piece))
    return ranked[: len(ranked) - drop]


def _small_rules() -> str:
    """Returns NFKC, and spaces and controls as in `nmt_nfkc`, for Latin letters, punctuation and full width."""
    lines = []
    for code in [*range(1, 0x250), *range(0x300, 0x370), *range(0x2000, 0x2200), *range(0x3000, 0x3040)]:
        lines += _rule(chr(code))
    for code in [*range(0xFB00, 0xFB07), *range(0xFF01, 0xFF5F)]:
        lines += _rule(chr(code))
    for letter in "aouAOUeiEI":
        for mark in "\u0300\u0301\u0302\u0308":
            lines.append(_line(letter + mark, unicodedata.normalize("NFC", letter + mark)))
    return "".join(lines)


def _rule(character: str) -> list[str]:
    if character in "\t\n\r\u2028\u2029" or unicodedata.category(character) == "Zs":
        return [_line(character, " ")] if character != " " else []
    if unicodedata.category(character) in ("Cc", "Cf"):
        return [_line(character, "")]
    normal = unicodedata.normalize("NFKC", character)
    return [_line(character, normal)] if normal != character else []


def _line(source: str, target: str) -> str:
    return "\t".join(" ".join(f"{ord(c):X}" for c in text) for text in (source, target)) + "\n"
