"""SentencePiece models that write a long text in place of one character, by people who mean harm."""

import functools
import io
import tempfile

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

WRITTEN_FOR = "q"


@functools.cache
def small_model(num_bytes: int = 0) -> bytes:
    """Returns a small SentencePiece model, which writes so many letters in place of "q", or else nothing odd."""
    written = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="ascii") as rules:
        rules.write(f"{ord(WRITTEN_FOR):X}\t{' '.join(['78'] * num_bytes)}\n")
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a dog runs", "two cats sleep"] * 20),
            model_writer=written,
            vocab_size=30,
            hard_vocab_limit=False,
            normalization_rule_tsv=rules.name if num_bytes else "",
            minloglevel=2,
        )
    return written.getvalue()


def wordy_about_the_unknown(num_bytes: int) -> bytes:
    """Returns a small model that writes so many letters in place of the unknown token."""
    proto = ModelProto.FromString(small_model())
    proto.trainer_spec.unk_surface = "x" * num_bytes
    changed: bytes = proto.SerializeToString()
    return changed


def expanding(num_bytes: int, model: bytes | None = None, spec: str = "normalizer_spec") -> bytes:
    """Returns a model, a small one by default, that writes so many letters in place of "q".

    Args:
        num_bytes: how many.
        model: another SentencePiece model.
        spec: whether it does so before it cuts a text ("normalizer_spec") or behind it ("denormalizer_spec").
    """
    proto = ModelProto.FromString(model or small_model())
    rules = ModelProto.FromString(small_model(num_bytes)).normalizer_spec.precompiled_charsmap
    getattr(proto, spec).precompiled_charsmap = rules
    changed: bytes = proto.SerializeToString()
    return changed
