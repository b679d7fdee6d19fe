"""Other people's models through the exported graphs and the engine: the ids of `generate`, each way to search."""

import dataclasses
from functools import cached_property
from pathlib import Path

import pytest

from export.agreement import measure_agreement
from export.files import write_variant
from export.id_translator import open_translator
from server.bundle.bundle import Bundle
from server.decoding.options import DecodingOptions
from server.network import Runner
from server.runtime.runner import open_runner
from tests.export.imports.parity import Imported, import_tiny
from tests.imports.expected import Run

# What int8 must reach to float32, in chrF: some points less than it did. Narrow models lose more than real ones.
MIN_CHRF = {
    "marian-eos-first": 77,
    "marian-separate": 77,
    "marian-shared": 77,
    "m2m100": 81,
    "mbart50": 78,
    "nllb": 86,
    "fsmt": 84,
    "fairseq": 84,
    "opennmt": 80,
}
NUM_CALIBRATED = 64
MAX_ROWS = 512  # many at once, which is what takes least time


@dataclasses.dataclass(frozen=True)
class Exported:
    """A tiny model and its graphs, which nothing has proven."""

    name: str
    imported: Imported
    directory: Path

    def translate(self, runner: Runner, run: Run) -> list[list[int]]:
        """Returns the ids of all sentences, as `generate` gives them: with their prefix, and without eos."""
        manifest = self.imported.manifest
        search = dataclasses.replace(manifest.search, early_stopping=run.early_stopping, forced_eos=run.forced_eos)
        ruled = Bundle(directory=self.directory, manifest=dataclasses.replace(manifest, search=search))
        sentences = self.imported.expected.sentences
        sources = [sentence.source_ids for sentence in sentences]
        prefixes = [self.imported.pair(sentence).target_prefix for sentence in sentences]
        options = DecodingOptions(
            beam_size=run.beam_size,
            length_penalty=run.length_penalty,
            max_output_tokens=run.max_tokens - len(prefixes[0]),
        )
        with open_translator(runner, ruled, max_rows=MAX_ROWS) as translator:
            found = translator(sources, options, prefixes)
        return [[*prefix, *best.ids] for prefix, best in zip(prefixes, found, strict=True)]

    def open(self, variant: str, targets: list[list[int]]) -> Runner:
        """Writes a variant, calibrated with the first sentences and their `targets`, and loads it."""
        subject, manifest = self.imported.subject, self.imported.manifest
        sources = [sentence.source_ids for sentence in self.imported.expected.sentences[: len(targets)]]
        written = write_variant(subject.model, self.directory, variant, sources, targets)
        whole = dataclasses.replace(manifest, variants={variant: written})
        return open_runner(Bundle(directory=self.directory, manifest=whole), variant, "cpu")

    @cached_property
    def exact(self) -> Runner:
        """The float32 variant."""
        return self.open("cpu-fp32", [])

    @cached_property
    def rounded(self) -> Runner:
        """The int8 variant, calibrated as an import does: with the model's own greedy translations."""
        bos = self.imported.manifest.special_ids.bos
        greedy = next(run for run in self.imported.expected.runs if run.beam_size == 1)
        return self.open("cpu-int8", [[bos, *ids] for ids in self.translate(self.exact, greedy)[:NUM_CALIBRATED]])


@pytest.fixture(scope="module", params=MIN_CHRF)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    directory: Path = tmp_path_factory.mktemp(request.param)
    return Exported(request.param, import_tiny(request.param, directory), directory)


def test_every_search_gives_the_ids_of_generate(exported: Exported) -> None:
    expected = exported.imported.expected
    wrong = {}
    for run in expected.runs:
        wanted = [[token for token in ids if token != expected.eos_id] for ids in expected.outputs(run)]
        found = exported.translate(exported.exact, run)
        wrong[run] = [i for i, ids in enumerate(found) if ids != wanted[i]]

    assert len(expected.sentences) >= 300
    assert wrong == {run: [] for run in expected.runs}


def test_int8_is_close_to_float(exported: Exported) -> None:
    beam = next(run for run in exported.imported.expected.runs if run.beam_size == 4)
    decode = exported.imported.tokenizer.decode
    exact, rounded = (
        [decode(ids) for ids in exported.translate(runner, beam)[NUM_CALIBRATED:]]
        for runner in (exported.exact, exported.rounded)
    )

    agreement = measure_agreement(rounded, exact)

    assert agreement["sentences"] >= 250
    assert agreement["chrf_to_fp32"] >= MIN_CHRF[exported.name], agreement
