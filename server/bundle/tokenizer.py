"""Text to ids and back, with the bundle's SentencePiece model; nothing else.

The vocabulary falls back to bytes, so that any text has ids, and "</s>" typed by a user is five characters, never the
control symbol. Private-use characters from U+E000 on are placeholders: the model copies them.
"""

import itertools
from collections.abc import Iterable, Sequence

from sentencepiece import SentencePieceProcessor

from server.bundle.manifest import TOKENIZER_FILE
from server.errors import BundleError


class Tokenizer:
    """The tokenizer of one bundle. May be used from several threads.

    Args:
        model: what the bundle's `TOKENIZER_FILE` holds.
        vocab_size: of the network; the tokenizer must not have more ids.
        eos_id: ends every source sentence.

    Raises:
        BundleError: it is no SentencePiece model, or does not fit the network.
    """

    def __init__(self, model: bytes, *, vocab_size: int, eos_id: int) -> None:
        self._processor = SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except (OSError, RuntimeError, ValueError) as error:  # the last: its words quote bytes that are no UTF-8
            raise BundleError([f"{TOKENIZER_FILE}: is no SentencePiece model"]) from error
        faults = []
        if self._processor.vocab_size() > vocab_size:
            faults.append(f"{TOKENIZER_FILE}: has {self._processor.vocab_size()} ids, the network has {vocab_size}")
        if self._processor.eos_id() != eos_id:
            faults.append(
                f"{TOKENIZER_FILE}: ends sentences with id {self._processor.eos_id()}, the manifest with {eos_id}"
            )
        if faults:
            raise BundleError(faults)
        self._eos_id = eos_id
        self._num_ids = self._processor.vocab_size()
        all_ids = list(range(self._num_ids))
        is_unknown = map(max, self._processor.is_byte(all_ids), self._processor.is_unknown(all_ids))
        self._unknown_ids = frozenset(itertools.compress(all_ids, is_unknown))

    def encode(self, text: str) -> tuple[int, ...]:
        """Returns the ids of one sentence with eos at the end; only eos for a text that normalises to nothing."""
        return tuple(self._processor.EncodeAsIds(text, add_eos=True))

    def num_unknown(self, ids: Iterable[int]) -> int:
        """Returns how many of these ids stand for what the vocabulary does not know: bytes, and unk."""
        return sum(map(self._unknown_ids.__contains__, ids))

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of target ids (without bos and eos); bytes that are no UTF-8 become U+FFFD."""
        # A network may have more ids than the tokenizer, where its vocabulary was padded: they stand for nothing.
        text: str = self._processor.decode([token for token in ids if token < self._num_ids])
        return text
