"""One side's vocabulary of SentencePiece: its model's own ids, or the places of its pieces in a table."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from server.bundle.parsing import parse, parse_json

MAX_FAULTS = 3  # of a table, that are named
# In place of one character, before a text is cut and behind it, and in place of the unknown token. Half of it refuses
# Unicode's own compatibility forms, of which one has 33 bytes. With twice as many, a text that a request may have could
# take 256 MB.
_MAX_WRITTEN_BYTES = 64
# Of a piece of a model or a table. Half would still do for words, and twice as many let a translation of 8192 tokens
# have 64 MB.
_MAX_PIECE_CHARACTERS = 1000
_SPACE = "\u2581"  # as pieces have it


class SentencePieces:
    """The vocabulary of the source, or of the target.

    Args:
        contents: of the files.
        model: name of the SentencePiece model.
        table: name of the pieces table, or None.
        vocab_size: of the network.
        control: ids that stand for no text.
        eos_id: of the network.
        faults: appended to; if there are any, the side is of no use.
    """

    def __init__(
        self,
        contents: Mapping[str, bytes],
        model: str,
        table: str | None,
        vocab_size: int,
        control: frozenset[int],
        eos_id: int,
        faults: list[str],
    ) -> None:
        found: list[str] = []
        self._pieces = read_table(table, contents[table], found) if table is not None else None
        self._processor = _load(model, contents[model], found)
        faults += found
        if found:
            return
        num_ids = self._processor.vocab_size() if self._pieces is None else len(self._pieces)
        if num_ids > vocab_size:
            faults.append(f"{table or model}: has {num_ids} ids, the network has {vocab_size}")
        if self._pieces is None and self._processor.eos_id() != eos_id:
            faults.append(f"{model}: ends sentences with id {self._processor.eos_id()}, the manifest with {eos_id}")
        silenced = [token for token in control if token < num_ids]
        if self._pieces is not None:
            silenced = [self._processor.PieceToId(self._pieces[token]) for token in silenced]
        if any(map(self._processor.IsByte, silenced)):
            faults.append(f"{model}: its bytes have ids of special tokens or prefixes")
            return
        self._processor = _silence(self._processor, contents[model], silenced)
        pieces = self._pieces or ()
        # A network may have more ids than the tokenizer, where its vocabulary was padded: they stand for nothing.
        self._num_ids = num_ids
        self._silent = control.union(token for token, piece in enumerate(pieces) if not piece)
        self._ids = {piece: token for token, piece in enumerate(pieces) if token not in self._silent}

    def encode(self, text: str, unk_id: int) -> list[int]:
        """Returns the ids of a text, with `unk_id` for what has none."""
        if self._pieces is None:
            ids: list[int] = self._processor.EncodeAsIds(text)
            return ids
        return [self._ids.get(piece, unk_id) for piece in self._processor.EncodeAsPieces(text)]

    def pieces(self) -> dict[int, str]:
        """Returns the pieces of the ids that a text may become."""
        pieces: Sequence[str] = self._pieces or self._processor.IdToPiece(list(range(self._num_ids)))
        return {token: piece for token, piece in enumerate(pieces) if token not in self._silent}

    def decode(self, ids: Sequence[int]) -> str:
        """Returns what ids stand for; nothing for ids that stand for no text."""
        num_ids, silent = self._num_ids, self._silent
        shown = [token for token in ids if token < num_ids and token not in silent]
        if self._pieces is None:
            decoded: str = self._processor.decode(shown)
            return decoded
        text: str = self._processor.DecodePieces([self._pieces[token] for token in shown])
        return text.replace(_SPACE, " ").strip()  # of pieces that the model does not know

    def unknown_ids(self, unk_id: int) -> frozenset[int]:
        """Returns the ids of bytes, and unk."""
        all_ids = list(range(self._processor.vocab_size()))
        is_unknown = map(max, self._processor.is_byte(all_ids), self._processor.is_unknown(all_ids))
        unknown: Iterable[int] = itertools.compress(all_ids, is_unknown)
        if self._pieces is not None:
            unknown = (self._ids.get(self._processor.IdToPiece(token), unk_id) for token in unknown)
        return frozenset(unknown)


def read_table(name: str, data: bytes, faults: list[str]) -> tuple[str, ...]:
    """Returns what a file of pieces has; what is wrong with it is appended to the faults."""
    found: list[str] = []
    table: tuple[str, ...] = ()
    try:
        table = parse(tuple[str, ...], parse_json(data), "the table", found)
    except ValueError as error:
        found.append(f"cannot be read: {error}")
    if not found and (longest := max(map(len, table), default=0)) > _MAX_PIECE_CHARACTERS:
        found.append(f"has a piece of {longest} characters, at most {_MAX_PIECE_CHARACTERS} are read")
    if not found:
        counts = Counter(filter(None, table)).most_common(MAX_FAULTS)
        found += [f"has {piece!r:.40} {count} times" for piece, count in counts if count > 1]
    faults += [f"{name}: {fault}" for fault in found[:MAX_FAULTS]]
    return () if found else table


def open_model(model: bytes) -> SentencePieceProcessor:
    """Opens a SentencePiece model.

    Raises:
        ValueError: it is none, writes too much in place of a character, or has a piece that is too long.
    """
    processor = SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except (OSError, RuntimeError, ValueError):  # the last: its words quote bytes that are no UTF-8
        raise ValueError("is no SentencePiece model") from None
    proto = ModelProto.FromString(model)
    written = [str(proto.trainer_spec.unk_surface).encode()]  # it is bytes where it is no UTF-8
    for spec in (proto.normalizer_spec, proto.denormalizer_spec):
        rules = spec.precompiled_charsmap  # the length of a table, the table, and the texts that it leads to
        written += rules[4 + int.from_bytes(rules[:4], "little") :].split(b"\0")
    if (longest := max(map(len, written))) > _MAX_WRITTEN_BYTES:
        raise ValueError(f"writes {longest} bytes in place of a character, at most {_MAX_WRITTEN_BYTES} are taken")
    if (longest := max((len(each.piece) for each in proto.pieces), default=0)) > _MAX_PIECE_CHARACTERS:
        raise ValueError(f"has a piece of {longest} characters, at most {_MAX_PIECE_CHARACTERS} are read")
    return processor


def _load(name: str, model: bytes, faults: list[str]) -> SentencePieceProcessor:
    try:
        return open_model(model)
    except ValueError as error:
        faults.append(f"{name}: {error}")
        return SentencePieceProcessor()


def _silence(processor: SentencePieceProcessor, model: bytes, ids: Iterable[int]) -> SentencePieceProcessor:
    """Returns a processor that cuts none of these pieces out of a text; most are control symbols already."""
    usable = [
        token
        for token in ids
        if not (processor.IsControl(token) or processor.IsUnknown(token) or processor.IsUnused(token))
    ]
    if not usable:
        return processor
    proto = ModelProto.FromString(model)
    for token in usable:
        proto.pieces[token].type = ModelProto.SentencePiece.UNUSED
    silenced = SentencePieceProcessor()
    silenced.LoadFromSerializedProto(proto.SerializeToString())
    return silenced
