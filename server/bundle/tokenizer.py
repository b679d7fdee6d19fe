"""Text to ids and back, as the bundle's tokenizer files say: SentencePiece models, or Moses and byte pairs.

What users type is text: "</s>", ">>deu<<" or "__de__" are characters, never the control or language tokens that are
written so. SentencePiece itself sees to it for the symbols that a model calls control symbols; other pieces whose ids
mean something to the network (special ids, prefixes of languages) are switched off when a model is loaded.

Ids are SentencePiece's own (`TOKENIZER_FILE`, or a model for each side), or the places of its pieces in a table: a JSON
list of each id's piece, "" for ids that stand for no text. Then a sentence is cut into pieces by the source's model,
and each is looked up; one that is not there is unk. A target without files of its own has the source's.
Where the bundle has `MOSES_FILE`, Moses and byte-pair encoding (`server.bundle.moses`) stand in SentencePiece's place.

Models of our own fall back to bytes, so any text has ids. They copy placeholders: private characters from U+E000 on.
"""

import functools
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

from server.bundle.byte_pairs import END_OF_WORD
from server.bundle.languages import Ids
from server.bundle.manifest import (
    MOSES_FILE,
    SOURCE_MODEL_FILE,
    SOURCE_PIECES_FILE,
    TARGET_MODEL_FILE,
    TARGET_PIECES_FILE,
    TOKENIZER_FILE,
    Manifest,
)
from server.bundle.masking import FIRST_PLACEHOLDER
from server.bundle.moses import MosesFile, MosesSource, MosesTarget
from server.bundle.parsing import parse, parse_json
from server.bundle.sentence_pieces import MAX_FAULTS, SentencePieces, read_table
from server.errors import BundleError

_SPACE = "\u2581"  # as pieces have it


class Tokenizer:
    """The tokenizer of one bundle. May be used from several threads.

    Args:
        manifest: of the bundle: which files there are, and what the ids mean.
        read: returns what a file holds that the manifest describes, as `Bundle.read` does.

    Attributes:
        placeholder_ids: of the symbols that the model copies, as its manifest says.

    Raises:
        BundleError: every fault: what is no SentencePiece model or no table, or does not fit the network.
    """

    def __init__(self, manifest: Manifest, read: Callable[[str], bytes]) -> None:
        special_ids = manifest.special_ids
        self._source: SentencePieces | MosesSource
        self._target: SentencePieces | MosesTarget
        is_moses = MOSES_FILE in manifest.extra_files
        self._source, self._target = _open_moses(manifest, read) if is_moses else _open_sides(manifest, read)
        self._unk_id, self._eos_id = special_ids.unk, special_ids.eos
        self._suffix = (special_ids.eos,) if manifest.source_eos else ()
        self._unknown_ids = self._source.unknown_ids(special_ids.unk)
        symbols = [chr(FIRST_PLACEHOLDER + index) for index in range(manifest.masking.num_placeholders)]
        encoded = {each: self._source.encode(each, special_ids.unk) for each in symbols}
        lacking = (each for each, ids in encoded.items() if self.num_unknown(ids) or self._target.decode(ids) != each)
        _raise_any(
            [f"masking.num_placeholders: the vocabulary lacks U+{ord(each):X}" for each in itertools.islice(lacking, 1)]
        )
        self.placeholder_ids = tuple(ids[-1] for ids in encoded.values())
        self._unreliable = frozenset(manifest.masking.unknown_characters)

    def encode(self, text: str, prefix: Ids = ()) -> Ids:
        """Returns what the encoder is fed: the prefix, the text's ids, if it normalises to any, and perhaps eos."""
        return (*prefix, *self._source.encode(text, self._unk_id), *self._suffix)

    def encode_target(self, text: str) -> Ids | None:
        """Returns a translation's ids, with eos; None if the target's tokenizer can only put texts together."""
        target = self._target
        return None if isinstance(target, MosesTarget) else (*target.encode(text, self._unk_id), self._eos_id)

    @property
    def has_forms(self) -> bool:
        """Whether `encode_forms` can encode."""
        return not isinstance(self._target, MosesTarget)

    def encode_forms(self, forms: Sequence[str]) -> tuple[Ids, ...]:
        """Returns the ids of words or phrases, each once. One that the vocabulary cannot write is left out."""
        encoded = [ids[:-1] for each in forms if (ids := self.encode_target(each)) is not None]
        return tuple(dict.fromkeys(ids for ids in encoded if ids and self._unk_id not in ids))

    def knows(self, character: str) -> bool:
        """Whether a character reaches the network as itself, and comes back: no private character ever does."""
        if character in self._unreliable or unicodedata.category(character) == "Co":
            return False
        if character in self._characters:
            return True
        # A tokenizer may make every text lower case.
        return character.lower() in self._characters and not self.num_unknown(self.encode(character))

    @functools.cached_property
    def _characters(self) -> frozenset[str]:
        """Those of the source's pieces."""
        return frozenset("".join(self.source_pieces())) - {_SPACE}

    def source_pieces(self) -> list[str]:
        """Returns what the source's ids stand for, as the vocabulary writes it: no bytes, and no control tokens."""
        return [piece for token, piece in self._source.pieces().items() if token not in self._unknown_ids]

    def spell_source(self, ids: Iterable[int]) -> list[str]:
        """Returns what each id of a source spells, with U+2581 for blanks; "" for an id that spells nothing."""
        spelled = self._source_spelled
        return [spelled.get(token, "") for token in ids]

    def spell_target(self, ids: Iterable[int]) -> list[str]:
        """Returns the same of a translation's ids."""
        spelled = self._target_spelled
        return [spelled.get(token, "") for token in ids]

    @functools.cached_property
    def _source_spelled(self) -> Mapping[int, str]:
        return _spelled(self._source.pieces())

    @functools.cached_property
    def _target_spelled(self) -> Mapping[int, str]:
        return _spelled(self._target.pieces())

    @functools.cached_property
    def word_parts(self) -> Mapping[int, int]:
        """The target's ids that go on with the word before them, where words are parted by blanks, and their length."""
        return {token: len(piece) for token, piece in self._target.pieces().items() if piece[:1].isalnum()}

    def num_added(self, prefix: Ids = ()) -> int:
        """Returns how many of the ids that `encode` returns are not the text's own."""
        return len(prefix) + len(self._suffix)

    def num_unknown(self, ids: Iterable[int]) -> int:
        """Returns how many of these ids stand for what the vocabulary does not know: bytes, and unk."""
        return sum(map(self._unknown_ids.__contains__, ids))

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of target ids: of bytes that are no UTF-8 U+FFFD, of ids that stand for no text nothing."""
        return self._target.decode(ids)


def _spelled(pieces: Mapping[int, str]) -> Mapping[int, str]:
    return {token: piece.replace(END_OF_WORD, _SPACE) for token, piece in pieces.items()}


def _open_sides(manifest: Manifest, read: Callable[[str], bytes]) -> tuple[SentencePieces, SentencePieces]:
    names, sizes, eos_id = manifest.files(()), manifest.dimensions, manifest.special_ids.eos
    model = TOKENIZER_FILE if manifest.tokenizer is not None else SOURCE_MODEL_FILE
    target_model = TARGET_MODEL_FILE if TARGET_MODEL_FILE in names else model
    table = SOURCE_PIECES_FILE if SOURCE_PIECES_FILE in names else None
    target_table = TARGET_PIECES_FILE if TARGET_PIECES_FILE in names else table
    contents = {name: read(name) for name in (model, target_model, table, target_table) if name is not None}
    source_control, target_control = manifest.control_ids()
    of_source = (model, table, sizes.encoder_vocab_size, source_control)
    of_target = (target_model, target_table, sizes.vocab_size, target_control)
    faults: list[str] = []
    source = SentencePieces(contents, *of_source, eos_id, faults)
    target = source if of_source == of_target else SentencePieces(contents, *of_target, eos_id, faults)
    _raise_any(faults)
    return source, target


def _open_moses(manifest: Manifest, read: Callable[[str], bytes]) -> tuple[MosesSource, MosesTarget]:
    faults: list[str] = []
    table = SOURCE_PIECES_FILE
    target_table = TARGET_PIECES_FILE if TARGET_PIECES_FILE in manifest.extra_files else table
    tables = {name: read_table(name, read(name), faults) for name in (table, target_table)}
    sizes = manifest.dimensions
    for name, vocab_size in ((table, sizes.encoder_vocab_size), (target_table, sizes.vocab_size)):
        if len(tables[name]) > vocab_size:
            faults.append(f"{name}: has {len(tables[name])} ids, the network has {vocab_size}")
    file = _read_moses(read(MOSES_FILE), faults)
    _raise_any(faults)
    assert file is not None  # or there were faults
    silent = [
        control.union(token for token, piece in enumerate(tables[name]) if not piece)
        for name, control in zip((table, target_table), manifest.control_ids(), strict=True)
    ]
    return MosesSource(file, tables[table], silent[0]), MosesTarget(file, tables[target_table], silent[1])


def _read_moses(data: bytes, faults: list[str]) -> MosesFile | None:
    found: list[str] = []
    file: MosesFile | None = None
    try:
        file = parse(MosesFile, parse_json(data), "", found)
    except ValueError as error:
        found.append(f"cannot be read: {error}")
    if file is not None and not found:
        found += file.faults()
    faults += [f"{MOSES_FILE}: {fault}" for fault in found[:MAX_FAULTS]]
    return file


def _raise_any(faults: list[str]) -> None:
    if faults:
        raise BundleError(list(dict.fromkeys(faults)))
