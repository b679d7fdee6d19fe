"""Checks with `transformers` at hand: `make check-imports`, or `python -m tests.imports.check [NAME ...]`.

For every tiny model: `generate` of the installed version gives what is in `expected/`, and `hf_search` gives the same
from the bare logits; `babelserve-import --check` finds no sentence that differs, nor, of models of many languages, for
what CTranslate2's converter makes of them.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from tests.imports.converting import convert
from tests.imports.expected import Expected, Run, by_length, read
from tests.imports.families import EXPECTED, MODELS
from tests.imports.generating import generate, load
from tests.imports.hf_search import Prefixes, search


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.imports.check", description=__doc__)
    names = sorted(path.name for path in MODELS.iterdir())
    parser.add_argument("names", nargs="*", choices=[[], *names], help="which; all if left out")
    parser.add_argument("--searched", type=int, default=40, help="sentences for hf_search, which has no cache")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    faults = 0
    for name in options.names or names:
        expected = read(EXPECTED / f"{name}.json.gz")
        model, _ = load(MODELS / name)
        every = range(0, len(expected.sentences), max(1, len(expected.sentences) // options.searched))
        for run in expected.runs:
            wanted = expected.outputs(run)
            generated = generate_all(model, expected, run)
            searched = {i: search_one(model, expected, run, i) for i in every}
            same = sum(a == b for a, b in zip(generated, wanted, strict=True))
            found = sum(wanted[i] == ids for i, ids in searched.items())
            faults += len(wanted) - same + len(searched) - found
            print(f"{name} {run}: generate {same}/{len(wanted)}, hf_search {found}/{len(searched)}", flush=True)
        faults += not import_and_compare(name, MODELS / name)
        if name in ("m2m100", "mbart50", "nllb"):
            with TemporaryDirectory() as directory:
                faults += not import_and_compare(name, convert(name, Path(directory) / name))
    return 1 if faults else 0


def import_and_compare(name: str, source: Path) -> bool:
    """Runs `babelserve-import --check` in a process of its own, as its users do; says whether nothing differed."""
    languages = [] if name.startswith(("marian", "fsmt")) else ["--source", "en,de", "--target", "de,en"]
    with TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "export.imports", str(source), f"{directory}/bundle", "--check"]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
        flags = ["--variants", "cpu-fp32", *languages]
        done = subprocess.run([*command, *flags], env=one_thread, stdout=subprocess.PIPE, text=True, check=False)
    print(f"{name}: {done.stdout}", flush=True)
    return done.returncode == 0


def generate_all(model: Any, expected: Expected, run: Run) -> list[list[int]]:
    """Returns what `generate` gives for every sentence."""
    answers: dict[int, list[int]] = {}
    for forced_bos in {sentence.forced_bos for sentence in expected.sentences}:
        chosen = [i for i, sentence in enumerate(expected.sentences) if sentence.forced_bos == forced_bos]
        sources = [expected.sentences[i].source_ids for i in chosen]
        for batch in by_length(sources):
            ids = generate(model, [sources[i] for i in batch], run, forced_bos)
            answers |= {chosen[i]: row for i, row in zip(batch, ids, strict=True)}
    return [answers[i] for i in range(len(expected.sentences))]


def search_one(model: Any, expected: Expected, run: Run, index: int) -> list[int]:
    """Returns what `hf_search` gives for a sentence, fed with the model's own logits."""
    sentence = expected.sentences[index]
    return search(log_probs_of(model, sentence.source_ids), run, expected.eos_id, sentence.forced_bos)


@torch.inference_mode()
def log_probs_of(model: Any, source: list[int]) -> Callable[[Prefixes], Tensor]:
    """Returns the model as `hf_search` wants it; ids are suppressed, and the rest renormalised, as its config says."""
    settings = model.generation_config
    ids = torch.tensor([source])
    encoded = model.get_encoder()(input_ids=ids, attention_mask=torch.ones_like(ids), return_dict=True)[0]

    @torch.inference_mode()
    def next_log_probs(prefixes: Prefixes) -> Tensor:
        rows = len(prefixes)
        logits = model(
            encoder_outputs=(encoded.expand(rows, -1, -1),),
            attention_mask=torch.ones_like(ids).expand(rows, -1),
            decoder_input_ids=torch.tensor([[settings.decoder_start_token_id, *prefix] for prefix in prefixes]),
            use_cache=False,
        ).logits[:, -1]
        log_probs: Tensor = logits.log_softmax(dim=-1)
        for word in settings.bad_words_ids or []:
            log_probs[:, word] = -torch.inf
        return log_probs.log_softmax(dim=-1) if settings.renormalize_logits else log_probs

    return next_log_probs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
