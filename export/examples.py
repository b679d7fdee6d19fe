"""A dev set's sentences, as a model is fed them."""

import logging
from dataclasses import dataclass

from export.subject import DevSet
from server.bundle.languages import Ids
from server.bundle.manifest import Manifest
from server.bundle.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

CHECKED_SENTENCES = 200
LEAST_WITHOUT_REFERENCES = 32  # sentences: nothing is measured with them but the model against itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A sentence of a `DevSet` that fits the model.

    Attributes:
        text: as it is written.
        source_ids: all that the encoder is fed.
        prefix: ids that its translation is forced to begin with.
        reference: its translation; empty if there is none.
        pair: codes of its languages.
    """

    text: str
    source_ids: Ids
    prefix: Ids
    reference: str
    pair: tuple[str, str]


def encode_examples(dev: DevSet, manifest: Manifest, tokenizer: Tokenizer) -> list[Example]:
    """Returns the sentences of a dev set that fit the model, as it is fed them.

    Args:
        dev: at least 200 pairs, or 32 sentences without references.
        manifest: of the model.
        tokenizer: of the model.

    Raises:
        ValueError: too few sentences fit, or one is of a direction that the model does not translate.
    """
    references = dev.references or [""] * len(dev.sources)
    codes = dev.pairs or [_first_pair(manifest)] * len(dev.sources)
    examples = []
    for text, reference, (source, target) in zip(dev.sources, references, codes, strict=True):
        pair = manifest.find_pair(source, target)
        if pair is None:
            raise ValueError(f"the model does not translate from {source} into {target}")
        ids = tokenizer.encode(text, pair.source_prefix)
        examples.append(
            Example(text=text, source_ids=ids, prefix=pair.target_prefix, reference=reference, pair=(source, target))
        )
    limit = manifest.limits.max_source_tokens
    fitting = [example for example in examples if 0 < len(example.source_ids) <= limit]
    least = CHECKED_SENTENCES if dev.references else LEAST_WITHOUT_REFERENCES
    if len(fitting) < least:
        raise ValueError(
            f"the dev set has {len(fitting)} sentences of at most {limit} tokens, at least {least} are needed"
        )
    if len(fitting) < len(examples):
        logger.warning("left out %d dev sentences over %d tokens", len(examples) - len(fitting), limit)
    return fitting


def _first_pair(manifest: Manifest) -> tuple[str, str]:
    if manifest.language_pairs:
        return manifest.language_pairs[0].source, manifest.language_pairs[0].target
    pairs = ((source, target) for target in manifest.target_codes for source in manifest.sources_of(target))
    return next(pairs)
