"""`python -m export.restore BUNDLE CHECKPOINT`: writes the checkpoint that a bundle was exported from.

The graphs of cpu-fp32 are drawn once more, of a network with random weights. Each weight of a drawn graph is a view of
one of the network, so copying the bundle's weights into these views fills the network, without a table of names. The
manifest has the hash of the checkpoint's weights, which proves that all of them are back. What a stopped run needs to
go on (`state.pt`) is in no checkpoint, and so in no bundle.
"""

import argparse
import sys
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper

from export.endings import endings
from export.files import EXACT
from export.graph import Graph
from export.graphs import draw_encoder, draw_step
from export.mapped import external_weights
from export.one_pass import draw_one_pass
from export.subject import weights_hash
from export.verify import VerificationError
from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from model.command import Parser, parse
from model.config import TransformerConfig
from model.families import FAMILIES
from model.network import Network
from model.one_pass import OnePass
from model.transformer import Transformer
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.graphs import ENCODER_FILE, ONE_PASS_FILE, PLAIN_STEP, WEIGHTS_FILE
from server.bundle.manifest import TOKENIZER_FILE
from server.errors import BundleError


def main() -> None:
    """Entry point; exit code 1 for other weights, 2 for a bundle that is damaged or has no checkpoint."""
    arguments = parse(build_parser())
    out: Path = arguments.checkpoint
    with endings("export.restore", out, BundleError):
        if out.exists():
            raise FileExistsError(f"{out} exists already")
        checkpoint = restore_checkpoint(arguments.bundle)
        out.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(out, checkpoint)
        sys.stdout.write(f"{out}: the weights that {arguments.bundle} was exported from\n")


def read_checkpoint(path: Path) -> Checkpoint:
    """Reads a checkpoint's file, or restores the checkpoint of a bundle's directory.

    Raises:
        OSError: there is no such file.
        ValueError: it is no checkpoint, or as `restore_checkpoint`.
        BundleError, VerificationError: as `restore_checkpoint`.
    """
    return restore_checkpoint(path) if path.is_dir() else load_checkpoint(path)


def restore_checkpoint(directory: Path) -> Checkpoint:
    """Returns the checkpoint that a bundle was exported from.

    Raises:
        BundleError: the bundle has no cpu-fp32, or a file is not what the manifest says.
        ValueError: it was not exported from a checkpoint, or another version drew its graphs otherwise.
        VerificationError: its weights are not those of the checkpoint.
    """
    bundle = open_bundle(directory, EXACT)
    facts = dict(bundle.manifest.training)
    expected = facts.pop("weights_sha256", None)
    if expected is None or "recipe" not in facts:
        raise ValueError(f"{directory} was not exported from a checkpoint of babelserve-train")
    try:
        config = TransformerConfig(**facts["recipe"]["model"])
        if config.family == "recurrent":  # whose graphs have the gates of both directions in one tensor
            raise ValueError(f"{directory} is of the family {config.family}, which cannot be restored")
        _check_size(config, bundle)  # before there is a network: it might take all memory
        model = FAMILIES[config.family].network(config)
        _fill(model, bundle)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{directory} is of a version whose networks were others: {error}") from error
    for dtype in (torch.float16, torch.float32):  # as final.pt has them, and as best.pt has them
        weights = {name: weight.to(dtype) for name, weight in model.state_dict().items()}
        if weights_hash(weights) == expected:
            return Checkpoint(config=model.config, weights=weights, tokenizer=bundle.read(TOKENIZER_FILE), facts=facts)
    raise VerificationError(f"{directory} has other weights than the checkpoint that its manifest names")


def _check_size(config: TransformerConfig, bundle: Bundle) -> None:
    """Raises ValueError if a network has more weights than the files of a bundle have room for."""
    with torch.device("meta"):  # the network without its numbers
        network = FAMILIES[config.family].network(config)
    num_bytes = sum(weight.nbytes for weight in network.state_dict().values())
    there = sum(map(len, bundle.contents.values()))
    if num_bytes > there:
        raise ValueError(f"{bundle.directory} has {there} bytes, and the network of its recipe {num_bytes}")


def _fill(model: Network, bundle: Bundle) -> None:
    """Gives a network the weights of a bundle. Raises KeyError for one that the bundle lacks."""
    content = bundle.read(f"{EXACT}/{WEIGHTS_FILE}")
    for file, drawn in _drawn(model).items():
        graph = onnx.load_model_from_string(bundle.read(f"{EXACT}/{file}"))
        stored = external_weights(graph, content)
        for tensor in graph.graph.initializer:
            if tensor.name not in stored:  # a small one, in the graph itself
                stored[tensor.name] = numpy_helper.to_array(tensor)
        for name, view in drawn.initializers.items():
            view[...] = stored[name]


def _drawn(model: Network) -> dict[str, Graph]:
    """Returns graphs by their files which together have all weights of a network."""
    if isinstance(model, OnePass):
        return {ONE_PASS_FILE: draw_one_pass(model)}
    assert isinstance(model, Transformer), "there is no other family"
    return {ENCODER_FILE: draw_encoder(model), PLAIN_STEP.file: draw_step(model)}


def build_parser() -> argparse.ArgumentParser:
    """All arguments."""
    parser = Parser(
        prog="python -m export.restore", description="Write the checkpoint that a bundle was exported from."
    )
    parser.add_argument("bundle", type=Path, help="directory of the bundle, such as server/builtin/en-de")
    parser.add_argument("checkpoint", type=Path, help="file to write; must not exist")
    return parser


if __name__ == "__main__":
    main()
