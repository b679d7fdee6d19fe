"""The tiny bundle's ids, pinned: a change of them is a change of the model's output, and must be meant.

`pytest --update-golden` rewrites the file.
"""

import json
from pathlib import Path

import pytest

from export.id_translator import open_translator
from server.bundle.bundle import Bundle
from server.decoding.options import DecodingOptions
from server.runtime.runner import open_runner

GOLDEN = Path(__file__).parents[1] / "golden" / "tiny_ids.json"


def test_ids_are_those_of_the_golden_file(
    tiny_bundle: Bundle, sources: list[list[int]], request: pytest.FixtureRequest
) -> None:
    found: dict[str, list[list[int]]] = {}
    with open_translator(open_runner(tiny_bundle, "cpu-fp32", "cpu"), tiny_bundle) as translator:
        for width in (1, 4):
            best = translator(sources[:20], DecodingOptions(beam_size=width))
            found[f"beam_size {width}"] = [list(hypothesis.ids) for hypothesis in best]
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(json.dumps(found) + "\n", encoding="utf-8")

    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))
