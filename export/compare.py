"""What a float32 variant is compared with: the PyTorch model, by the checks of its family."""

from collections.abc import Callable, Sequence
from typing import Any

from export.id_translator import IdTranslator
from export.subject import Subject
from export.verify import check_ids, check_step_logits
from export.verify_one_pass import check_lengths, check_positions, check_readings
from model.one_pass import OnePass
from model.search import Stepwise
from server.bundle.languages import Ids
from server.runtime.one_pass import OnePassRunner
from server.runtime.runner import HostRunner, NetworkRunner

_STEPPED = 32  # sentences whose logits are compared: there is a step for each position
_BEAM_SIZES = {1: "greedy_ids", 4: "beam_4_ids"}


def compare_with_model(
    subject: Subject,
    runner: NetworkRunner,
    translator: IdTranslator,
    sources: list[list[int]],
    targets: list[list[int]],
    prefixes: Sequence[Ids],
    let_go: Callable[[], None],
) -> dict[str, Any]:
    """Compares a variant with its model, and returns what was measured, for the manifest.

    Args:
        subject: the model.
        runner: of the variant.
        translator: of the same.
        sources: token ids with eos.
        targets: token ids starting with bos, of the same sentences, for networks that take steps.
        prefixes: what each translation is forced to begin with.
        let_go: gives back memory; what comes next needs other weights.

    Raises:
        VerificationError: they differ.
    """
    model, parity = subject.model, dict[str, Any]()
    if isinstance(model, OnePass) and isinstance(runner, OnePassRunner):
        parity["positions"] = check_positions(model, runner, sources)
        for beam_size, key in _BEAM_SIZES.items():
            parity[key] = check_readings(model, translator, sources, beam_size)
        parity["exact_lengths"] = check_lengths(model, translator, sources)
    else:
        assert isinstance(model, Stepwise), "there is no other family"
        assert isinstance(runner, HostRunner), "float32 is for CPUs"
        parity["step_logits"] = check_step_logits(model, runner, sources[:_STEPPED], targets[:_STEPPED], let_go)
        for beam_size, key in _BEAM_SIZES.items():
            let_go()
            parity[key] = check_ids(
                model,
                translator,
                sources,
                beam_size,
                subject.max_target_tokens,
                prefixes=prefixes,
                search_defaults=subject.search,
            )
    let_go()
    return parity
