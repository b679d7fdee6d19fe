"""Tokenizers of a test's own files."""

import dataclasses
import io

import pytest
import sentencepiece

from server.bundle.files import FileFacts
from server.bundle.manifest import TOKENIZER_FILE, Dimensions, Manifest
from server.bundle.tokenizer import Tokenizer
from server.errors import BundleError
from tests.server.conftest import EOS, SENTENCES

TYPED = ["</s>", "<s>", "<pad>", "<unk>", ">>deu<<", "__de__", "deu_Latn", "de_DE", "<2de>", "<0x41>", "<mask>"]
NO_FILE = FileFacts(sha256="0", bytes=0)


def open_tokenizer(manifest: Manifest, files: dict[str, bytes]) -> Tokenizer:
    """Opens a tokenizer of these files, as if the manifest described them."""
    facts = dict.fromkeys(files, NO_FILE)
    tokenizer = facts.pop(TOKENIZER_FILE, None)
    return Tokenizer(dataclasses.replace(manifest, tokenizer=tokenizer, extra_files=facts), files.__getitem__)


def faults_of(manifest: Manifest, files: dict[str, bytes]) -> list[str]:
    with pytest.raises(BundleError) as caught:
        open_tokenizer(manifest, files)
    return caught.value.faults


def with_vocab(manifest: Manifest, vocab_size: int, source_vocab_size: int | None = None) -> Dimensions:
    return dataclasses.replace(manifest.dimensions, vocab_size=vocab_size, source_vocab_size=source_vocab_size)


def train(user_defined: list[str], eos_id: int = EOS) -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=str(SENTENCES),
        model_writer=written,
        vocab_size=500,
        pad_id=0 if eos_id else 2,
        unk_id=1,
        bos_id=-1,
        eos_id=eos_id,
        user_defined_symbols=user_defined,
        num_threads=1,
        minloglevel=2,
    )
    return written.getvalue()


@pytest.fixture(scope="module")
def foreign_model() -> bytes:
    """Without byte fallback, with a language token and a mask that its text may be cut into."""
    return train(["<2de>", "<mask>", "__de__"])
