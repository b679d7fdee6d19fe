"""What is exported: a network with all that a bundle must say of it, whoever has trained it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from model.checkpoint import Checkpoint
from model.command import NAMES, is_name
from model.network import Network
from model.one_pass import UPSAMPLING, OnePass
from server.bundle.languages import LanguagePair, Languages
from server.bundle.manifest import TOKENIZER_FILE, SearchDefaults
from server.bundle.masking import MAX_PLACEHOLDERS, Masking
from server.bundle.shortlist import Shortlist

_MOST_TOKENS = 1 << 20  # that a recipe may name; no network has as many positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model to export.

    Attributes:
        model: in evaluation mode, float32.
        name: for the manifest.
        tokenizer: files of the bundle, by name.
        language_pairs, languages: as in `Manifest`; one of them is empty.
        source_eos, search, masking: as in `Manifest`.
        max_source_tokens, max_target_tokens: as in `Limits`.
        shortlist: for the bundle to offer; None for none.
        training, origin: for people.
    """

    model: Network
    name: str
    tokenizer: Mapping[str, bytes]
    language_pairs: tuple[LanguagePair, ...] = ()
    languages: Languages | None = None
    source_eos: bool = True
    search: SearchDefaults = field(default_factory=SearchDefaults)
    masking: Masking = field(default_factory=Masking)
    max_source_tokens: int
    max_target_tokens: int
    shortlist: Shortlist | None = None
    training: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DevSet:
    """Real sentences that the export calibrates and proves itself with.

    Attributes:
        sources: the sentences.
        references: their translations; if there are none, the model's own in float32 take their place.
        pairs: codes of each sentence's languages, source and target; empty for the model's first pair.
    """

    sources: list[str]
    references: list[str] = field(default_factory=list)
    pairs: Sequence[tuple[str, str]] = ()


def subject_of(checkpoint: Checkpoint, shortlist: Shortlist | None = None) -> Subject:
    """Returns a model of our own as what is exported.

    Raises:
        ValueError: the checkpoint says of itself what no bundle may have, or it cannot have a shortlist.
    """
    config, facts = checkpoint.config, checkpoint.facts
    for key in ("name", "source_language", "target_language"):
        if not isinstance(found := facts.get(key), str) or not is_name(found):
            raise ValueError(f"the checkpoint's {key} must be {NAMES}, not {found!r:.80}")
    max_source_tokens = min(longest_source(checkpoint), config.max_positions)
    # Learned positions behind the longest training sentence have never been trained.
    num_positions = max_source_tokens if config.positions == "learned" else config.max_positions
    model = checkpoint.build_network()
    is_one_pass = isinstance(model, OnePass)
    if is_one_pass and shortlist is not None:
        raise ValueError("a one-pass network has no shortlist")
    return Subject(
        model=model,
        name=facts["name"],
        tokenizer={TOKENIZER_FILE: checkpoint.tokenizer},
        language_pairs=(LanguagePair(source=facts["source_language"], target=facts["target_language"]),),
        max_source_tokens=max_source_tokens,
        max_target_tokens=UPSAMPLING * max_source_tokens
        if is_one_pass
        else min(num_positions, 2 * max_source_tokens + 16),
        shortlist=shortlist,
        masking=_masking(facts),
        training={**facts, "weights_sha256": weights_hash(checkpoint.weights)},
    )


def longest_source(checkpoint: Checkpoint) -> int:
    """Returns the most tokens of the sentences that a model was trained with. Raises ValueError if it does not say."""
    return _of_recipe(checkpoint.facts, "training", "max_tokens", checkpoint.config.max_positions, (1, _MOST_TOKENS))


def _masking(facts: Mapping[str, Any]) -> Masking:
    """Returns what a recipe has taught its model to read."""
    placeholders = _of_recipe(facts, "tokenizer", "num_placeholders", 0, (0, MAX_PLACEHOLDERS))
    rewritings = _table(facts, "augmentation")
    return Masking(
        num_placeholders=placeholders if rewritings.get("placeholder") else 0,
        folds_capitals=bool(rewritings.get("lower_case")),
    )


def _of_recipe(facts: Mapping[str, Any], table: str, key: str, default: int, limits: tuple[int, int]) -> int:
    """Returns a whole number of the recipe among a checkpoint's facts. Raises ValueError if it is none."""
    found, (least, most) = _table(facts, table).get(key, default), limits
    if type(found) is not int or not least <= found <= most:
        raise ValueError(f"the checkpoint's recipe.{table}.{key} must be in {least}..{most}, not {found!r:.80}")
    return found


def _table(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns a table of the recipe among a checkpoint's facts. Raises ValueError if it is none."""
    recipe = facts.get("recipe", {})
    table = recipe.get(name, {}) if isinstance(recipe, Mapping) else None
    if not isinstance(table, Mapping):
        raise ValueError(f"the checkpoint's recipe.{name} must be a table")
    return table


def weights_hash(weights: Mapping[str, Tensor]) -> str:
    """Returns a hash of all weights and their names, as hexadecimal digits."""
    digest = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        digest.update(name.encode())
        digest.update(weight.contiguous().numpy().tobytes())
    return digest.hexdigest()
