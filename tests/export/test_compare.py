"""Which checks a family has."""

from export.compare import compare_with_model
from export.id_translator import open_translator
from export.subject import subject_of
from model.checkpoint import Checkpoint
from server.bundle.bundle import Bundle
from server.runtime.runner import open_runner


def test_a_network_is_compared_by_the_checks_of_its_family(
    one_pass_checkpoint: Checkpoint, one_pass_bundle: Bundle, sources: list[list[int]]
) -> None:
    runner, some, gone = open_runner(one_pass_bundle, "cpu-fp32", "cpu"), sources[:6], []
    with open_translator(runner, one_pass_bundle) as translator:
        parity = compare_with_model(
            subject_of(one_pass_checkpoint), runner, translator, some, [], [()] * 6, lambda: gone.append(True)
        )

    assert {name: each["sentences"] for name, each in parity.items()} == dict.fromkeys(
        ("positions", "greedy_ids", "beam_4_ids", "exact_lengths"), 6
    )
    assert gone
