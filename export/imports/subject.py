"""A foreign model with its weights loaded, as what is exported."""

import logging

from tqdm import tqdm

from export.imports.foreign import ForeignModel
from export.imports.report import Report
from export.imports.weights import network_without_weights
from export.subject import Subject


def build_subject(model: ForeignModel, report: Report) -> Subject:
    """Loads the weights, one after the other, into a network that had none: they are in memory once.

    Raises:
        ImportFault: a file cannot be read after all.
    """
    network = network_without_weights(model.config)
    total = len(network.state_dict())
    is_quiet = not logging.getLogger().isEnabledFor(logging.INFO)
    weights = tqdm(model.weights(report), desc="weights", total=total, unit="", disable=True if is_quiet else None)
    network.load_state_dict(dict(weights), assign=True)
    return Subject(
        model=network.requires_grad_(False).eval(),
        name=model.name,
        tokenizer=model.tokenizer,
        language_pairs=model.language_pairs,
        languages=model.languages,
        source_eos=model.source_eos,
        search=model.search,
        max_source_tokens=model.max_source_tokens,
        max_target_tokens=model.max_target_tokens,
        shortlist=model.shortlist,
        origin={"family": model.family, **model.origin},
    )
