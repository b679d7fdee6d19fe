"""The manifest of a bundle, as far as it is known before its variants are written and proven."""

from pathlib import Path

from export.states import states_of
from export.subject import Subject
from model.config import TransformerConfig
from server.bundle.files import FileFacts, describe_file
from server.bundle.graphs import MAX_BEAM_SIZE
from server.bundle.manifest import (
    REVISION,
    SHORTLIST_FILE,
    TOKENIZER_FILE,
    Dimensions,
    Golden,
    Limits,
    Manifest,
    SpecialIds,
)

_GOLDEN_BEAM_SIZE = 4


def draft_manifest(subject: Subject, directory: Path, *, version: str) -> Manifest:
    """Describes a model; its variants and the golden sentence are still missing.

    Args:
        subject: the model.
        directory: with the tokenizer's files, and the shortlist if there is one.
        version: of the model.
    """
    config = subject.model.config
    files: dict[str, FileFacts] = {name: describe_file(directory / name) for name in subject.tokenizer}
    if subject.shortlist is not None:
        files[SHORTLIST_FILE] = describe_file(directory / SHORTLIST_FILE)
    return Manifest(
        revision=REVISION,
        name=subject.name,
        version=version,
        family=config.family,
        language_pairs=subject.language_pairs,
        languages=subject.languages,
        dimensions=dimensions_of(config),
        special_ids=special_ids_of(config),
        source_eos=subject.source_eos,
        limits=Limits(
            max_source_tokens=subject.max_source_tokens,
            max_target_tokens=subject.max_target_tokens,
            max_beam_size=MAX_BEAM_SIZE,
        ),
        states=states_of(config),
        search=subject.search,
        masking=subject.masking,
        tokenizer=files.pop(TOKENIZER_FILE, None),
        variants={},
        golden=Golden(source_text="", source_ids=(), beam_size=_GOLDEN_BEAM_SIZE, outputs={}),
        extra_files=files,
        origin=subject.origin,
        training=subject.training,
    )


def dimensions_of(config: TransformerConfig) -> Dimensions:
    """Returns what a manifest says of a network's sizes."""
    return Dimensions(
        vocab_size=config.vocab_size,
        source_vocab_size=config.source_vocab_size,
        d_model=config.d_model,
        num_heads=config.num_heads,
        head_dim=config.head_dim,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.cross_layers,
    )


def special_ids_of(config: TransformerConfig) -> SpecialIds:
    """Returns what a manifest says of a network's special tokens."""
    return SpecialIds(pad=config.pad_id, unk=config.unk_id, bos=config.bos_id, eos=config.eos_id)
