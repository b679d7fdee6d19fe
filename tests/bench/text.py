"""What is translated: real sentences, as ids."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import sentencepiece

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_TEXT = ROOT / "tests" / "data" / "newstest2014_500.en.txt"
_MAX_SOURCE_TOKENS = 200  # what all the benchmark's models take; newstest2014 has no longer sentence


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences, their ids with eos, and the serialised SentencePiece model that made these."""

    lines: list[str]
    source_ids: list[tuple[int, ...]]
    tokenizer: bytes

    def first(self, count: int) -> "Text":
        """Returns the text's first sentences."""
        return Text(self.lines[:count], self.source_ids[:count], self.tokenizer)


def read_text(path: Path, tokenizer: bytes, max_source_tokens: int = _MAX_SOURCE_TOKENS) -> Text:
    """Reads one sentence per line, plain or gzipped; leaves blank and over-long lines out.

    Raises:
        ValueError: nothing is left.
    """
    data = path.read_bytes()
    content = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    lines = [line.strip() for line in content.split("\n") if line.strip()]
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    pairs = [(line, (*ids, processor.eos_id())) for line, ids in zip(lines, processor.encode(lines), strict=True)]
    pairs = [(line, ids) for line, ids in pairs if len(ids) <= max_source_tokens]
    if not pairs:
        raise ValueError(f"{path}: has no sentence of at most {max_source_tokens} tokens")
    return Text([line for line, _ in pairs], [ids for _, ids in pairs], tokenizer)
