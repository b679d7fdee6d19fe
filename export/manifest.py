"""The manifest of a bundle whose files are written; it lacks only what the proof adds."""

from pathlib import Path
from typing import Any

from model.config import TransformerConfig
from server.bundle.files import describe_file
from server.bundle.graphs import MAX_BEAM_SIZE
from server.bundle.languages import LanguagePair
from server.bundle.manifest import (
    REVISION,
    SHORTLIST_FILE,
    TOKENIZER_FILE,
    Dimensions,
    Golden,
    Limits,
    Manifest,
    SpecialIds,
    Variant,
)

_GOLDEN_BEAM_SIZE = 4


def draft_manifest(
    config: TransformerConfig,
    directory: Path,
    variants: dict[str, Variant],
    *,
    version: str,
    facts: dict[str, Any],
    max_source_tokens: int,
    golden_text: str,
    golden_ids: tuple[int, ...],
) -> Manifest:
    """Describes a model and the files in a directory; the golden outputs are still missing.

    Args:
        config: of the model.
        directory: with the tokenizer, and the shortlist if there is one.
        variants: as they have been written there.
        version: of the model.
        facts: of its training: "name", "source_language", "target_language", and what else people may want to know.
        max_source_tokens: longest source that the model was trained with, eos included.
        golden_text: a sentence for every start-up to translate.
        golden_ids: its tokens, eos included.
    """
    # Learned positions behind the longest training sentence have never been trained.
    num_positions = max_source_tokens if config.positions == "learned" else config.max_positions
    has_shortlist = (directory / SHORTLIST_FILE).exists()
    return Manifest(
        revision=REVISION,
        name=facts["name"],
        version=version,
        language_pairs=(LanguagePair(source=facts["source_language"], target=facts["target_language"]),),
        dimensions=Dimensions(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            num_heads=config.num_heads,
            head_dim=config.head_dim,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
        ),
        special_ids=SpecialIds(pad=config.pad_id, unk=config.unk_id, bos=config.bos_id, eos=config.eos_id),
        limits=Limits(
            max_source_tokens=max_source_tokens,
            max_target_tokens=min(num_positions, 2 * max_source_tokens + 16),
            max_beam_size=MAX_BEAM_SIZE,
        ),
        tokenizer=describe_file(directory / TOKENIZER_FILE),
        variants=variants,
        golden=Golden(source_text=golden_text, source_ids=golden_ids, beam_size=_GOLDEN_BEAM_SIZE, outputs={}),
        extra_files={SHORTLIST_FILE: describe_file(directory / SHORTLIST_FILE)} if has_shortlist else {},
        training=facts,
    )
