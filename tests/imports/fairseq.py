"""Tiny models as fairseq's checkpoints are: of the tiny FSMT model, or of any network of ours; needs no fairseq.

The same weights under fairseq's names: `tests.imports.ask_fairseq` has fairseq itself load what is written here, and
compares its translations.
"""

import json
import shutil
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from export.imports.families.positions import tensor2tensor
from model.config import TransformerConfig
from model.transformer import Transformer
from tests.imports.families import MODELS

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
_FSMT = MODELS / "fsmt"
_LAYER = {
    "self_attention.output": "self_attn.out_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "self_norm": "self_attn_layer_norm",
    "cross_norm": "encoder_attn_layer_norm",
    "feed_forward.hidden": "fc1",
    "feed_forward.output": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
_OTHERS = {
    "encoder_positions": "encoder.embed_positions.weight",
    "decoder_positions": "decoder.embed_positions.weight",
    "embedding.tokens.weight": "decoder.embed_tokens.weight",
    "source_embedding.tokens.weight": "encoder.embed_tokens.weight",
    "output.weight": "decoder.output_projection.weight",
}

_FIRST_POSITION = 2  # fairseq counts from the padding id + 1
# Kinds that fairseq has and FSMT has not, as changes of `random_network`.
NETWORKS: dict[str, dict[str, Any]] = {
    "own-output": {"source_vocab_size": 90, "tied_output": False},
    "pre-shared": {"norm": "pre"},
    "pre-without-final-norm": {"norm": "pre", "final_norm": False},
    "learned-positions": {"is_learned": True, "source_vocab_size": 90},
    "pre-encoder": {"encoder_norm": "pre", "source_vocab_size": 90},
    "embedding-norm": {"embedding_norm": True, "activation": "gelu", "scale_embedding": False},
}


def random_network(*, is_learned: bool = False, **changes: Any) -> Transformer:
    """Returns a small network with random weights, and positions as fairseq computes or has learnt them."""
    torch.manual_seed(0)
    config = TransformerConfig(
        **{
            "vocab_size": 96,
            "d_model": 32,
            "encoder_num_heads": 4,
            "num_heads": 2,
            "encoder_ffn_dim": 40,
            "ffn_dim": 24,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "max_positions": 64,
            "positions": "table",
            "pad_id": 1,
            "unk_id": 3,
            "bos_id": 2,
            "eos_id": 2,
            **changes,
        }
    )
    model = Transformer(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    for table in (model.encoder_positions, model.decoder_positions):
        size = (config.max_positions, config.d_model)
        table.copy_(torch.randn(size) if is_learned else tensor2tensor(*size, _FIRST_POSITION))
    return model


def options(config: TransformerConfig, **changes: Any) -> dict[str, Any]:
    """Returns what fairseq 0.12 would have been told to train such a network, and some of what changes nothing."""
    sides = (("encoder", config.encoder, config.encoder_layers), ("decoder", config.decoder, config.decoder_layers))
    sizes: dict[str, Any] = {}
    for side, stack, layers in sides:
        sizes |= {
            f"{side}_embed_dim": config.d_model,
            f"{side}_ffn_embed_dim": stack.ffn_dim,
            f"{side}_layers": layers,
            f"{side}_attention_heads": stack.num_heads,
            f"{side}_normalize_before": stack.is_pre_norm,
            f"{side}_learned_pos": False,
            f"{side}_layers_to_keep": None,
            f"{side}_layerdrop": 0,
        }
    return {
        "arch": "transformer_wmt_en_de",
        "task": "translation",
        "source_lang": "en",
        "target_lang": "de",
        "data": "data-bin/wmt16_en_de",
        "activation_fn": config.activation,
        "max_source_positions": config.max_positions,
        "max_target_positions": config.max_positions,
        "share_decoder_input_output_embed": config.tied_output,
        "share_all_embeddings": config.source_vocab_size is None,
        "layernorm_embedding": config.embedding_norm,
        "no_scale_embedding": not config.scale_embedding,
        "decoder_output_dim": config.d_model,
        "decoder_input_dim": config.d_model,
        "adaptive_softmax_cutoff": None,
        "dropout": 0.3,
        "optimizer": "adam",
        "lr": [0.0005],
        "bpe": None,
        **sizes,
        **changes,
    }


def random_checkpoint(name: str) -> tuple[Transformer, dict[str, Any], tuple[list[str], list[str]]]:
    """Returns one of `NETWORKS`, its checkpoint, and dictionaries that fit."""
    changes = NETWORKS[name]
    is_learned = changes.get("is_learned", False)
    model = random_network(**changes)
    args = options(model.config, encoder_learned_pos=is_learned, decoder_learned_pos=is_learned)
    sizes = (model.config.source_vocab_size or model.config.vocab_size, model.config.vocab_size)
    sides = tuple([f"{'a' if i % 2 else 'B'}{i}{'@@' * (i % 3)}" for i in range(size - len(SPECIAL))] for size in sizes)
    return model, checkpoint(args, weights_of(model, is_learned=is_learned)), sides  # type: ignore[return-value]


def fsmt_options() -> dict[str, Any]:
    """Returns those of the tiny FSMT model."""
    config = json.loads((_FSMT / "config.json").read_text(encoding="utf-8"))
    sizes = {name: config[name] for name in ("encoder_layers", "decoder_layers", "d_model")}
    return options(
        TransformerConfig(
            vocab_size=config["tgt_vocab_size"],
            source_vocab_size=config["src_vocab_size"],
            encoder_num_heads=config["encoder_attention_heads"],
            num_heads=config["decoder_attention_heads"],
            encoder_ffn_dim=config["encoder_ffn_dim"],
            ffn_dim=config["decoder_ffn_dim"],
            max_positions=config["max_position_embeddings"],
            tied_output=False,
            pad_id=1,
            **sizes,
        )
    )


def fsmt_weights() -> dict[str, Tensor]:
    """Returns those of the tiny FSMT model, in float32, by fairseq's names, with what fairseq 0.12 has beside them."""
    found = torch.load(_FSMT / "pytorch_model.bin", weights_only=True)
    return _with_buffers({name.removeprefix("model."): tensor.float() for name, tensor in found.items()})


def weights_of(model: Transformer, *, is_learned: bool = False) -> dict[str, Tensor]:
    """Returns the weights of a network of ours likewise; positions only if they are learned."""
    width = model.config.d_model
    found: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        part, _, kind = name.rpartition(".")
        side, _, rest = part.partition(".")
        number, _, rest = rest.partition(".")
        if name.endswith("_positions"):
            if is_learned:
                found[_OTHERS[name]] = torch.cat([torch.zeros(_FIRST_POSITION, width), tensor])
        elif name in _OTHERS:
            found[_OTHERS[name]] = tensor
        elif name.endswith(("_norm.weight", "_norm.bias")):
            found[_norm_name(name)] = tensor
        elif rest.endswith("qkv"):
            attention = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}[rest.partition(".")[0]]
            for letter, third in zip("qkv", tensor.chunk(3), strict=True):
                found[f"{side}.layers.{number}.{attention}.{letter}_proj.{kind}"] = third
        elif rest in _LAYER:
            found[f"{side}.layers.{number}.{_LAYER[rest]}.{kind}"] = tensor
    shared = found["decoder.embed_tokens.weight"]
    found.setdefault("encoder.embed_tokens.weight", shared)
    found.setdefault("decoder.output_projection.weight", shared)
    # By its version fairseq knows that there was no norm at the end yet.
    version = 1 if model.config.final_norm is False else 3
    return _with_buffers({name: tensor.detach().clone() for name, tensor in found.items()}, version)


def _norm_name(name: str) -> str:
    part, _, kind = name.rpartition(".")
    if part.count(".") == 2:
        side, number, norm = part.split(".")
        return f"{side}.layers.{number}.{_LAYER[norm]}.{kind}"
    side = part.partition("_")[0]
    return f"{side}.{'layernorm_embedding' if 'embedding' in part else 'layer_norm'}.{kind}"


def _with_buffers(weights: dict[str, Tensor], version: int = 3) -> dict[str, Tensor]:
    for side in ("encoder", "decoder"):
        weights[f"{side}.version"] = torch.tensor([float(version)])
        if f"{side}.embed_positions.weight" not in weights:
            weights[f"{side}.embed_positions._float_tensor"] = torch.ones(1)
    return weights


def fsmt_dictionaries() -> tuple[list[str], list[str]]:
    """Returns the lines of the dictionaries of the tiny FSMT model: pieces that do not end a word have @@ there."""
    sides = []
    for file in ("vocab-src.json", "vocab-tgt.json"):
        ids = json.loads((_FSMT / file).read_text(encoding="utf-8"))
        pieces = sorted(ids, key=ids.__getitem__)[len(SPECIAL) :]
        sides.append([p.removesuffix("</w>") if p.endswith("</w>") else f"{p}@@" for p in pieces])
    return sides[0], sides[1]


def checkpoint(args: dict[str, Any], weights: dict[str, Tensor]) -> dict[str, Any]:
    """Returns what `torch.save` is given for an older checkpoint, but for the meters of its training."""
    return {
        "args": Namespace(**args),
        "model": weights,
        "optimizer_history": [
            {"criterion_name": "CrossEntropyCriterion", "num_updates": 400, "lr_scheduler_state": {}}
        ],
        "extra_state": {"train_iterator": {"epoch": 2, "iterations_in_epoch": 0}, "val_loss": 2.5},
        "last_optimizer_state": {"state": {}, "param_groups": [{"lr": 0.1, "params": [0]}]},
    }


def write_directory(directory: Path, document: Any = None, dictionaries: Sequence[Sequence[str]] | None = None) -> Path:
    """Writes a checkpoint, or the tiny FSMT model's, with dictionaries and merges, into a directory that it makes."""
    directory.mkdir()
    document = document or checkpoint(fsmt_options(), fsmt_weights())
    torch.save(document, directory / "checkpoint_best.pt")
    for code, lines in zip(("en", "de"), dictionaries or fsmt_dictionaries(), strict=True):
        text = "".join(f"{piece} {1000 - i}\n" for i, piece in enumerate(lines))
        (directory / f"dict.{code}.txt").write_text(text, encoding="utf-8")
    shutil.copy(_FSMT / "merges.txt", directory / "bpecodes")
    return directory
