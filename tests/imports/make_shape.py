"""Makes a directory of the real size with random weights: `python -m tests.imports.make_shape opus-base OUT`.

For memory and speed: such a model writes nonsense, and ends a sentence but by chance. The tokenizers are those of the
tiny models with filler pieces up to the real size. Weights are made one shard at a time, so any shape fits in memory.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoConfig, AutoModelForSeq2SeqLM

from tests.imports import family_many, family_marian
from tests.imports.families import Family, write_json
from tests.imports.vocabulary import read_proto

SHARD_BYTES = 1 << 30
SIZES: dict[str, dict[str, Any]] = {
    "opus-base": {"d_model": 512, "ffn": 2048, "heads": 8, "layers": 6, "vocab": 60_000, "dtype": torch.float32},
    "tc-big": {"d_model": 1024, "ffn": 4096, "heads": 16, "layers": 6, "vocab": 57_000, "dtype": torch.float16},
    "nllb-600m": {"d_model": 1024, "ffn": 4096, "heads": 16, "layers": 12, "vocab": 256_206, "dtype": torch.float32},
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.imports.make_shape", description=__doc__)
    parser.add_argument("shape", choices=SIZES)
    parser.add_argument("out", type=Path, help="directory to make")
    parser.add_argument("--layers", type=int, help="of each side, if not the real number")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True)
    size = SIZES[options.shape] | ({"layers": options.layers} if options.layers else {})
    family = family_many.NLLB if options.shape == "nllb-600m" else family_marian.SHARED
    family.write(options.out)
    _enlarge_nllb(options.out, size["vocab"]) if family is family_many.NLLB else _enlarge_marian(
        options.out, size["vocab"]
    )
    _enlarge_config(options.out / "config.json", size, "relu" if options.shape == "tc-big" else None)
    print(f"{write_weights(family, options.out, size['dtype']):,} parameters")


def write_weights(family: Family, directory: Path, dtype: torch.dtype) -> int:
    """Writes random weights for the directory's config in shards of at most 1 GiB and returns their number."""
    config = AutoConfig.from_pretrained(directory)
    with torch.device("meta"):
        model = AutoModelForSeq2SeqLM.from_config(config, dtype=dtype)
    tied = ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")
    shapes = {
        name: tensor.shape
        for name, tensor in model.state_dict().items()
        if not any(part in name for part in (*tied, *family.absent))
    }
    shards: list[list[str]] = [[]]
    room = SHARD_BYTES
    for name, shape in shapes.items():
        num_bytes = math.prod(shape) * dtype.itemsize
        if num_bytes > room and shards[-1]:
            shards.append([])
            room = SHARD_BYTES
        shards[-1].append(name)
        room -= num_bytes
    torch.manual_seed(1)
    files = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    files = files if len(shards) > 1 else ["model.safetensors"]
    for file, names in zip(files, shards, strict=True):
        state = {name: _random(name, shapes[name], config.init_std).to(dtype) for name in names}
        save_file(state, directory / file, metadata={"format": "pt"})
    num_parameters: int = sum(math.prod(shape) for shape in shapes.values())
    if len(shards) > 1:
        index = {name: file for file, names in zip(files, shards, strict=True) for name in names}
        metadata = {"total_size": num_parameters * dtype.itemsize}
        write_json(directory / "model.safetensors.index.json", {"metadata": metadata, "weight_map": index})
    return num_parameters


def _random(name: str, shape: torch.Size, std: float) -> Tensor:
    """Returns what a new model has, but for the biases, which are not zero: what is left out must be noticed."""
    if "norm" in name and name.endswith("weight"):
        return torch.ones(shape)
    return torch.randn(shape) * std


def _enlarge_marian(directory: Path, vocab_size: int) -> None:
    vocabulary = list(json.loads((directory / "vocab.json").read_text(encoding="utf-8")))
    filler = [f"▁filler{i}" for i in range(vocab_size - len(vocabulary))]
    half = len(filler) // 2
    _add_pieces(directory / "source.spm", filler[:half])
    _add_pieces(directory / "target.spm", filler[half:])
    old = {"eos": vocabulary.index("</s>"), "pad": len(vocabulary) - 1}
    write_json(directory / "vocab.json", {piece: i for i, piece in enumerate([*vocabulary[:-1], *filler, "<pad>"])})
    for name in ("config.json", "generation_config.json"):
        content = json.loads((directory / name).read_text(encoding="utf-8"))
        for key in ("pad_token_id", "decoder_start_token_id"):
            assert content[key] == old["pad"]
            content[key] = vocab_size - 1
        content["bad_words_ids"] = [[vocab_size - 1]]
        write_json(directory / name, content)


def _enlarge_nllb(directory: Path, vocab_size: int) -> None:
    path = directory / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    pieces = [piece for piece, _ in sorted(content["model"]["vocab"].items(), key=lambda item: item[1])]
    first_language = min(token["id"] for token in content["added_tokens"] if token["id"] > 3)
    filler = [f"▁filler{i}" for i in range(vocab_size - 2 - len(pieces))]
    _add_pieces(directory / "sentencepiece.bpe.model", filler)
    grown = [*pieces[:first_language], *filler, *pieces[first_language:]]
    ids = {piece: i for i, piece in enumerate(grown)}
    content["model"]["vocab"] = ids
    for token in content["added_tokens"]:
        token["id"] = ids[token["content"]]
    for token in content["post_processor"]["special_tokens"].values():
        token["ids"] = [ids[text] for text in token["tokens"]]
    write_json(path, content)


def _add_pieces(path: Path, pieces: list[str]) -> None:
    proto = read_proto(path)
    lowest = min(piece.score for piece in proto.pieces)
    for i, piece in enumerate(pieces):
        proto.pieces.add(piece=piece, score=lowest - 1 - i)
    proto.trainer_spec.vocab_size = len(proto.pieces)
    path.write_bytes(proto.SerializeToString())


def _enlarge_config(path: Path, size: dict[str, Any], activation: str | None) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    config |= {"d_model": size["d_model"], "num_hidden_layers": size["layers"], "vocab_size": size["vocab"]}
    for side in ("encoder", "decoder"):
        config |= {
            f"{side}_layers": size["layers"],
            f"{side}_attention_heads": size["heads"],
            f"{side}_ffn_dim": size["ffn"],
        }
    config["torch_dtype"] = str(size["dtype"]).removeprefix("torch.")
    config["activation_function"] = activation or config["activation_function"]
    write_json(path, config)


if __name__ == "__main__":
    main(sys.argv[1:])
