"""`python -m export.rewrite BUNDLE OUT`: writes a bundle of an earlier revision as the export writes it today, smaller.

Its weights are stored once, as `export.halves` says, and so is the embedding of int8, which the projection reads too.
The bundle appears only after its translations were found to be the same to the last bit.
"""

import argparse
import dataclasses
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from export.description import described_sizes
from export.drafts import drafted
from export.endings import endings
from export.files import save_graphs
from export.halves import share_halves
from export.id_translator import open_translator
from export.probe_bundle import write_manifest
from export.verify import VerificationError
from model.command import Parser, parse
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.files import describe_file
from server.bundle.graphs import EMBEDDING
from server.bundle.manifest import Manifest
from server.bundle.variant_files import Variant
from server.decoding.result import Hypothesis
from server.errors import BundleError
from server.runtime.runner import open_runner

_SENTENCES, _LONGEST = 64, 40  # of random tokens, that both are compared with


def main() -> None:
    """Entry point; exit code 1 when the translations are others, 2 for a bundle that cannot be read."""
    arguments = parse(build_parser())
    with endings("export.rewrite", arguments.out, BundleError):
        bundle = rewrite(arguments.bundle, arguments.out)
        sys.stdout.write(f"{bundle.directory}: translates the same ({described_sizes(bundle.manifest)})\n")


def rewrite(source: Path, out: Path) -> Bundle:
    """Writes a bundle anew.

    Args:
        source: the bundle, which stays as it is.
        out: directory to make; must not exist.

    Raises:
        FileExistsError: `out` exists.
        ValueError: the bundle is of this revision already.
        VerificationError: it does not translate as it did.
    """
    before = open_bundle(source)
    if any(variant.halves for variant in before.manifest.variants.values()):
        raise ValueError(f"{source} stores its weights once already")
    with drafted(out) as draft:
        shutil.copytree(source, draft, dirs_exist_ok=True)
        written = {name: _rewritten(draft / name, each) for name, each in before.manifest.variants.items()}
        manifest = dataclasses.replace(before.manifest, variants=share_halves(draft, written))
        write_manifest(draft, manifest)
        _compare(before, open_bundle(draft))
    return open_bundle(out)


def _rewritten(directory: Path, variant: Variant) -> Variant:
    """Writes the graphs of an int8 variant whose projection reads the embedding."""
    if variant.dtype != "int8":
        return variant
    graphs = [(file, _with_one_table(onnx.load(directory / file))) for file in _graphs_of(variant)]
    offset = save_graphs(directory, graphs)
    files = {name: describe_file(directory / name) for name in variant.files}
    return dataclasses.replace(variant, embedding_offset=offset, files=files)


def _graphs_of(variant: Variant) -> list[str]:
    return sorted((name for name in variant.files if name.endswith(".onnx")), reverse=True)  # the encoder first


def _with_one_table(model: onnx.ModelProto) -> onnx.ModelProto:
    """Takes from a graph the matrix that is the table of the embedding, turned round."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    if EMBEDDING not in tensors:
        return model
    table = numpy_helper.to_array(tensors[EMBEDDING])
    for name, tensor in tensors.items():
        if tuple(tensor.dims) == table.T.shape and np.array_equal(numpy_helper.to_array(tensor), table.T):
            model.graph.initializer.remove(tensor)
            model.graph.node.insert(0, helper.make_node("Transpose", [EMBEDDING], [name], name=name, perm=[1, 0]))
    return model


def _compare(before: Bundle, after: Bundle) -> None:
    differing = [name for name in before.manifest.variants if _translations(before, name) != _translations(after, name)]
    if differing:
        raise VerificationError(f"{', '.join(differing)}: other translations than before")


def _translations(bundle: Bundle, variant: str) -> list[Hypothesis]:
    manifest = bundle.manifest
    sources = [list(manifest.golden.source_ids), *_random_sources(manifest)]
    runner = open_runner(bundle, variant, "cpu")
    with open_translator(runner, bundle) as translator:
        options = manifest.golden_options()
        return [
            *translator(sources, options),
            *translator(sources, dataclasses.replace(options, beam_size=1)),
        ]


def _random_sources(manifest: Manifest) -> list[list[int]]:
    rng = np.random.default_rng(0)
    longest = min(_LONGEST, manifest.limits.max_source_tokens)
    drawn: list[NDArray[np.int64]] = [
        rng.integers(0, manifest.dimensions.encoder_vocab_size, rng.integers(1, longest)) for _ in range(_SENTENCES)
    ]
    return [[*ids.tolist(), manifest.special_ids.eos] for ids in drawn]


def build_parser() -> argparse.ArgumentParser:
    """All arguments."""
    parser = Parser(
        prog="python -m export.rewrite", description="Write a bundle of an earlier revision anew: it becomes smaller."
    )
    parser.add_argument("bundle", type=Path, help="directory of the bundle, which stays as it is")
    parser.add_argument("out", type=Path, help="directory to make; must not exist")
    return parser


if __name__ == "__main__":
    main()
