"""Compares imported checkpoints of fairseq with fairseq itself: `python -m tests.imports.ask_fairseq [DIRECTORY ...]`.

Needs a venv with `pip install --no-deps fairseq==0.12.2 'omegaconf<2.1' 'hydra-core<1.1' antlr4-python3-runtime==4.8
bitarray portalocker regex sacrebleu`. Without a directory it asks about the tiny FSMT model and networks with random
weights, as `tests.imports.fairseq` writes them: fairseq loads them strictly, so that their names are its own.
"""

import contextlib
import dataclasses
import functools
import inspect
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import torch

from export.imports.detect import read_model
from export.imports.languages import GivenLanguages
from export.imports.report import Report
from export.imports.subject import build_subject
from model.search import search
from model.transformer import Transformer
from tests.imports import expected, fairseq
from tests.imports.families import EXPECTED

_MAX_TOKENS = 40


def main() -> None:
    """Prints for each model how many greedy and beam 5 translations have the ids of fairseq's generator."""
    _mend()
    with tempfile.TemporaryDirectory() as directory:
        given = [Path(name) for name in sys.argv[1:]]
        for path in given or _write(Path(directory)):
            is_random = path.name in fairseq.NETWORKS  # which end no sentence
            for beam_size in (1,) if is_random else (1, 5):
                print(
                    f"{path.name}: beam {beam_size}: {_compare(path, beam_size, 64 if is_random else 330)}", flush=True
                )


def _write(directory: Path) -> Iterator[Path]:
    yield fairseq.write_directory(directory / "fsmt-en-de")
    for name in fairseq.NETWORKS:
        _, document, dictionaries = fairseq.random_checkpoint(name)
        yield fairseq.write_directory(directory / name, document, dictionaries)


def _compare(path: Path, beam_size: int, num_sentences: int) -> str:
    report = Report()
    model = read_model(path, GivenLanguages(), report)
    report.check()
    assert model is not None
    network = build_subject(model, report).model
    assert isinstance(network, Transformer)
    rows, first = model.config.source_vocab_size or model.config.vocab_size, len(fairseq.SPECIAL)
    sentences = [sentence.source_ids for sentence in expected.read(EXPECTED / "fsmt.json.gz").sentences[:num_sentences]]
    sources = [[token if token < rows else first + token % (rows - first) for token in ids] for ids in sentences]
    sources = [ids for ids in sources if len(ids) < model.max_source_tokens]
    most = min(_MAX_TOKENS, model.max_target_tokens - 1)
    theirs = _generate(path, sources, beam_size, most)
    found = search(network, sources, beam_size=beam_size, length_penalty=1.0, max_tokens=most)
    ours = [hypotheses[0].ids for hypotheses in found]
    # At the limit fairseq has every hypothesis end, and chooses among them by what the end costs.
    chosen = [i for i, ids in enumerate(theirs) if beam_size == 1 or len(ids) < most - 1]
    equal = sum(ours[i] == theirs[i] for i in chosen)
    ended = sum(len(ids) < most for ids in theirs)
    return f"{equal} of {len(chosen)} compared; of {len(sources)} translations {ended} end within {most} tokens"


def _generate(path: Path, sources: list[list[int]], beam_size: int, most: int) -> list[list[int]]:
    from fairseq import checkpoint_utils  # noqa: PLC0415  # after `_mend`
    from fairseq.sequence_generator import SequenceGenerator  # noqa: PLC0415

    (file,) = path.glob("*.pt")
    overrides = {"data": str(path)}
    whole = functools.partial(torch.load, weights_only=False)  # files that this program or its user wrote
    with mock.patch("torch.load", whole):
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(file)], arg_overrides=overrides)
    models[0].eval()
    generator = SequenceGenerator(models, task.target_dictionary, beam_size=beam_size, max_len_b=most)
    outputs: dict[int, list[int]] = {}
    for batch in expected.by_length(sources):
        ids = torch.tensor([sources[i] for i in batch])
        found = generator.generate(models, {"net_input": {"src_tokens": ids, "src_lengths": (ids != 1).sum(1)}})
        outputs |= {i: hypotheses[0]["tokens"].tolist()[:-1] for i, hypotheses in zip(batch, found, strict=True)}
    return [outputs[i] for i in range(len(sources))]


def _mend() -> None:
    """Lets fairseq 0.12, which is for Python up to 3.10, be imported: its dataclasses have dataclasses for defaults."""
    source = inspect.getsource(dataclasses)
    mended = source.replace("f.default.__class__.__hash__ is None", "isinstance(f.default, (list, dict, set))")
    exec(compile(mended, dataclasses.__file__, "exec"), dataclasses.__dict__)
    with contextlib.redirect_stdout(sys.stderr):
        import fairseq.models  # noqa: F401, PLC0415


if __name__ == "__main__":
    main()
