"""Tokenizers of fairseq's models and older ones of Argos: Moses cuts texts into words, byte pairs those into pieces.

Moses' rules are those of sacremoses, which the extra `moses` brings. It writes `<` as `&lt;`, so that no text can spell
a control token; and those have no place in the vocabulary that texts are looked up in.

Source of the order of steps: `transformers`, models/fsmt/tokenization_fsmt.py, and fairseq's scripts.
"""

import functools
import html
import importlib.util
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from server.bundle.byte_pairs import END_OF_WORD, BytePairs

_PACKAGE = "sacremoses"
_CACHED_WORDS = 2**14
_LONGEST_CACHED = 32  # characters: what is longer will hardly come again


@dataclass(frozen=True, slots=True, kw_only=True)
class MosesFile:
    """What `MOSES_FILE` holds.

    Attributes:
        source_language, target_language: as Moses knows them, such as "en"; of one that it does not know the rules for
            English hold.
        lower_case: whether the source is made lower case.
        clean: whether Unicode's punctuation is written as ASCII, and what is not printable left out.
        dash_splits: whether words with a hyphen are three.
        end_is_piece: see `BytePairs`.
        merges: pairs of pieces with a space between them, the most important first.
    """

    source_language: str
    target_language: str
    lower_case: bool = False
    clean: bool = True
    dash_splits: bool = True
    end_is_piece: bool = False
    merges: tuple[str, ...]

    def faults(self) -> list[str]:
        """Returns what is wrong with it, or with this machine."""
        wrong = [merge for merge in self.merges if len(merge.split(" ")) != 2 or not all(merge.split(" "))]
        found = (
            [f"{len(wrong)} merges are no two pieces with a space between, such as {wrong[0]!r:.40}"] if wrong else []
        )
        if importlib.util.find_spec(_PACKAGE) is None:
            found.append(f"needs {_PACKAGE}: pip install 'babelserve[moses]'")
        return found


class MosesSource:
    """The source's tokenizer.

    Args:
        file: without faults.
        pieces: of the vocabulary, by id.
        silent: ids that no text becomes.
    """

    def __init__(self, file: MosesFile, pieces: Sequence[str], silent: AbstractSet[int]) -> None:
        import sacremoses  # noqa: PLC0415  # of an extra

        self._file = file
        self._normalizer = sacremoses.MosesPunctNormalizer(
            lang=file.source_language, pre_replace_unicode_punct=file.clean
        )
        self._moses = sacremoses.MosesTokenizer(lang=file.source_language)
        _make_faster(self._moses)
        self._ids = {piece: token for token, piece in enumerate(pieces) if token not in silent}
        merges = [(first, second) for first, _, second in (merge.partition(" ") for merge in file.merges)]
        self._byte_pairs = BytePairs(merges, end_is_piece=file.end_is_piece)
        self._cut_cached = functools.lru_cache(_CACHED_WORDS)(self._byte_pairs.cut)

    def encode(self, text: str, unk_id: int) -> list[int]:
        """Returns the ids of a text."""
        normal = self._normalizer.normalize(text.lower() if self._file.lower_case else text)
        if self._file.clean:
            normal = "".join(character for character in normal if not unicodedata.category(character).startswith("C"))
        words = self._moses.tokenize(normal, aggressive_dash_splits=self._file.dash_splits, escape=True)
        return [self._ids.get(piece, unk_id) for word in words for piece in self._cut(word)]

    def pieces(self) -> dict[int, str]:
        """Returns the pieces of the ids that a text may become, without Moses' escapes."""
        return {token: html.unescape(piece) for piece, token in self._ids.items()}

    def unknown_ids(self, unk_id: int) -> frozenset[int]:
        """Returns the ids of what the vocabulary does not know."""
        return frozenset((unk_id,))

    def _cut(self, word: str) -> list[str]:
        return self._cut_cached(word) if len(word) <= _LONGEST_CACHED else self._byte_pairs.cut(word)


class MosesTarget:
    """The target's tokenizer; arguments as those of `MosesSource`."""

    def __init__(self, file: MosesFile, pieces: Sequence[str], silent: AbstractSet[int]) -> None:
        import sacremoses  # noqa: PLC0415  # of an extra

        self._moses = sacremoses.MosesDetokenizer(lang=file.target_language)
        self._pieces = pieces
        self._silent = silent

    def pieces(self) -> dict[int, str]:
        """Returns the pieces of the ids that a translation may have, without Moses' escapes."""
        pieces = enumerate(self._pieces)
        return {token: html.unescape(piece) for token, piece in pieces if token not in self._silent}

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of ids."""
        shown = [self._pieces[token] for token in ids if token < len(self._pieces) and token not in self._silent]
        words = "".join(piece.replace(END_OF_WORD, " ") for piece in shown).split()
        text: str = self._moses.detokenize(words)
        return text


def _make_faster(moses: Any) -> None:
    """Answers two questions as sacremoses 0.2 does, which makes a set of 100,000 letters for each word with a dot."""
    letters, lower = frozenset(moses.IsAlpha), frozenset(moses.IsLower)
    moses.isanyalpha = lambda text: not letters.isdisjoint(text)
    moses.islower = lower.issuperset
