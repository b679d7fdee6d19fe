"""What Marian, M2M100, mBART and FSMT have in common in `transformers`: tensors, files, generation settings."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from export.imports.formats.safetensors import list_safetensors, list_sharded
from export.imports.formats.tensors import FormatError, LazyTensor, Tensors
from export.imports.formats.torch_files import list_torch
from export.imports.report import Report
from export.imports.settings import ForeignSettings
from export.imports.weights import Computed, Plan, Rows, Stack, stack
from model.config import TransformerConfig
from server.bundle.manifest import SearchDefaults

ACTIVATIONS = {
    "relu": "relu",
    "swish": "silu",
    "silu": "silu",
    "gelu": "gelu",
    "quick_gelu": "quick_gelu",
}

# Settings that say how a model was trained, saved or is to be called, not what it computes.
_HARMLESS_WORDS = """
    _name_or_path _num_labels _commit_hash _attn_implementation _attn_implementation_autoset activation_dropout
    architectures attention_dropout classif_dropout classifier_dropout decoder_layerdrop dropout dtype
    encoder_layerdrop finetuning_task gradient_checkpointing id2label init_std is_decoder is_encoder_decoder
    label2id max_length model_type num_hidden_layers output_attentions output_hidden_states output_past problem_type
    return_dict save_step tokenizer_class torch_dtype torchscript transformers_version use_cache use_bfloat16
    extra_pos_embeddings chunk_size_feed_forward pruned_heads static_position_embeddings
    force_bos_token_to_be_generated num_labels task_specific_params prefix add_bias_logits
"""
HARMLESS = frozenset(_HARMLESS_WORDS.split())
_GENERATION_KEYS_WORDS = """
    num_beams length_penalty early_stopping max_length max_new_tokens forced_bos_token_id forced_eos_token_id
    bad_words_ids decoder_start_token_id bos_token_id eos_token_id pad_token_id
"""
_GENERATION_KEYS = frozenset(_GENERATION_KEYS_WORDS.split())
_GENERATION_HARMLESS_WORDS = """
    _from_model_config transformers_version renormalize_logits use_cache temperature top_k top_p typical_p
    remove_invalid_values return_dict_in_generate output_scores output_attentions output_hidden_states
"""
_GENERATION_HARMLESS = frozenset(_GENERATION_HARMLESS_WORDS.split())
# What other searches do, and the value that leaves it off.
_OFF = {
    "do_sample": (False,),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "repetition_penalty": (1.0, 1),
    "encoder_repetition_penalty": (1.0, 1),
    "diversity_penalty": (0.0, 0),
    "num_beam_groups": (1,),
    "num_return_sequences": (1,),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "suppress_tokens": (),
    "begin_suppress_tokens": (),
    "exponential_decay_length_penalty": (),
    "force_words_ids": (),
    "constraints": (),
    "sequence_bias": (),
    "prompt_lookup_num_tokens": (),
    "guidance_scale": (1.0, 1),
    "penalty_alpha": (),
}

_WEIGHT_FILES = (
    ("model.safetensors", list_safetensors),
    ("model.safetensors.index.json", lambda path: list_sharded(path, list_safetensors)),
    ("pytorch_model.bin", list_torch),
    ("pytorch_model.bin.index.json", lambda path: list_sharded(path, list_torch)),
)


def list_weights(directory: Path, report: Report) -> dict[str, LazyTensor]:
    """Lists the tensors of a directory as `save_pretrained` writes it; notes what is wrong."""
    for name, list_file in _WEIGHT_FILES:
        if (directory / name).exists():
            try:
                return list_file(directory / name)
            except FormatError as error:
                report.fault(name, found=error, remedy="download it again, all of it")
                return {}
    others = [path.name for path in directory.iterdir() if path.suffix in (".h5", ".msgpack", ".ot", ".npz")]
    names = ", ".join(name for name, _ in _WEIGHT_FILES[::2])
    found = f"only {', '.join(sorted(others))}" if others else "no weights"
    report.fault(directory.name or ".", found=found, expected=f"one of {names}")
    return {}


def read_sizes(config: ForeignSettings) -> dict[str, Any]:
    """Returns the sizes of both sides, named as `TransformerConfig` names them."""
    encoder_ffn, decoder_ffn = (config.whole(f"{side}_ffn_dim", least=1, most=2**16) for side in ("encoder", "decoder"))
    heads = [config.whole(f"{side}_attention_heads", least=1, most=2**8) for side in ("encoder", "decoder")]
    width = config.whole("d_model", least=8, most=2**14)
    for side, count in zip(("encoder", "decoder"), heads, strict=True):
        if width % (8 * count):
            config.fault(
                f"{side}_attention_heads", f"a width d_model / heads that is a multiple of 8; d_model is {width}"
            )
    return {
        "d_model": width,
        "encoder_layers": config.whole("encoder_layers", least=1, most=2**8),
        "decoder_layers": config.whole("decoder_layers", least=1, most=2**8),
        "encoder_ffn_dim": encoder_ffn,
        "ffn_dim": decoder_ffn,
        "encoder_num_heads": heads[0],
        "num_heads": heads[1],
    }


def read_activation(config: ForeignSettings, default: str = "gelu") -> str:
    """Returns our name of the activation."""
    name = config.text("activation_function", default)
    if name not in ACTIVATIONS:
        config.fault("activation_function", " or ".join(ACTIVATIONS))
    return ACTIVATIONS.get(name, "relu")


def read_search(
    generation: ForeignSettings, config: ForeignSettings, network: TransformerConfig
) -> tuple[SearchDefaults, int, tuple[int, ...]]:
    """Reads how the makers search: the generation config, and for what it leaves out the older place, the config.

    Returns:
        The search, the most tokens of a translation, and the ids never to be generated.
    """
    max_positions = network.max_positions
    both = ForeignSettings(generation.file, {**_generation_part(config), **generation.values}, generation._report)  # noqa: SLF001
    for key, off in _OFF.items():
        both.expect(key, *off, remedy="searches are for the likeliest translation here, without that")
        config.get(key, None)
    eos = config.get("eos_token_id", None)
    forced_eos = both.get("forced_eos_token_id", None)
    if forced_eos not in (None, eos, [eos]):
        both.fault("forced_eos_token_id", f"{eos}, which is eos_token_id, or null")
    early = both.get("early_stopping", False)
    if early not in (True, False):
        both.fault("early_stopping", "true or false")
    max_length = both.whole("max_length", max_positions + 1, least=2, most=2**20)
    max_new = both.whole("max_new_tokens", max_positions, least=1, most=2**20)
    defaults = SearchDefaults(
        beam_size=min(both.whole("num_beams", 1, least=1, most=1024), 16),
        length_penalty=both.number("length_penalty", 1.0, least=0.0, most=10.0),
        early_stopping=bool(early),
        forced_eos=forced_eos is not None,
    )
    bad_words = both.get("bad_words_ids", [])
    suppressed = []
    for word in bad_words if isinstance(bad_words, list) else [None]:
        if not isinstance(word, list) or len(word) != 1 or type(word[0]) is not int:
            both.fault("bad_words_ids", "single ids", "sequences of several cannot be forbidden here")
            break
        if not 0 <= word[0] < network.vocab_size:
            both.fault("bad_words_ids", f"ids from 0 to {network.vocab_size - 1}")
            break
        suppressed.append(word[0])
    for key in _GENERATION_KEYS:
        both.get(key, None)
        config.get(key, None)
    both.finish(_GENERATION_HARMLESS | HARMLESS)
    return defaults, min(max_positions, max_length - 1, max_new), tuple(sorted(set(suppressed)))


def _generation_part(config: ForeignSettings) -> dict[str, object]:
    keys = _GENERATION_KEYS | _OFF.keys()
    return {key: value for key, value in config.values.items() if key in keys}


def plan_layers(config: TransformerConfig) -> Plan:
    """Returns which tensors the weights of the layers are."""
    plan: Plan = {}
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for i in range(layers):
            ours, theirs = f"{side}.{i}", f"model.{side}.layers.{i}"
            plan |= _attention(f"{ours}.self_attention", f"{theirs}.self_attn")
            plan |= _pair(f"{ours}.self_norm", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                plan |= _attention(f"{ours}.cross_attention", f"{theirs}.encoder_attn")
                plan |= _pair(f"{ours}.cross_norm", f"{theirs}.encoder_attn_layer_norm")
            plan |= _pair(f"{ours}.feed_forward.hidden", f"{theirs}.fc1")
            plan |= _pair(f"{ours}.feed_forward.output", f"{theirs}.fc2")
            plan |= _pair(f"{ours}.feed_forward_norm", f"{theirs}.final_layer_norm")
    return plan


def plan_norms(ours: str, theirs: str) -> Plan:
    """Returns which tensors the norms of both sides are; `ours` and `theirs` say where the side stands."""
    plan: Plan = {}
    for side in ("encoder", "decoder"):
        plan |= _pair(ours.format(side), theirs.format(side))
    return plan


def plan_joint_embedding(tensors: Tensors) -> Plan:
    """Returns which tensor the one embedding is that both sides and the output share.

    Older files have all of its names, newer ones any one. Where they differ the network is as its first name says:
    that is what `transformers` ties the others to (and what OPUS-MT's tc-big models need).
    """
    names = [
        "model.shared.weight",
        "model.decoder.embed_tokens.weight",
        "model.encoder.embed_tokens.weight",
        "lm_head.weight",
    ]
    return {"embedding.tokens.weight": _first_of(names, tensors)}


def plan_separate_embeddings(tensors: Tensors, output: str) -> Plan:
    """Returns which tensors the embedding of each side is; the output, `output` if it is there, is the target's."""
    target = _first_of(["model.decoder.embed_tokens.weight", output], tensors)
    return {
        "source_embedding.tokens.weight": stack("model.encoder.embed_tokens.weight"),
        "embedding.tokens.weight": target,
    }


def plan_positions(tables: Mapping[str, Callable[[], torch.Tensor]]) -> Plan:
    """Returns the positions of each side, computed; a file may have them too."""
    return {
        f"{side}_positions": Computed(
            table, (f"model.{side}.embed_positions.weight", f"model.{side}.embed_positions.weights")
        )
        for side, table in tables.items()
    }


def plan_output_bias(tensors: Tensors) -> Plan:
    """Returns which tensor the output bias is: zeros if the file has none."""
    name = "final_logits_bias"
    return {"output_bias": Stack((Rows(name if name in tensors else None),))}


def _first_of(names: list[str], tensors: Tensors) -> Stack:
    present = [name for name in names if name in tensors] or names[:1]
    return Stack((Rows(present[0]),), same=tuple(present[1:]))


def _attention(ours: str, theirs: str) -> Plan:
    plan: Plan = {}
    for part in ("weight", "bias"):
        plan[f"{ours}.qkv.{part}"] = stack(*(f"{theirs}.{each}_proj.{part}" for each in "qkv"))
        plan[f"{ours}.output.{part}"] = stack(f"{theirs}.out_proj.{part}")
    return plan


def _pair(ours: str, theirs: str) -> Plan:
    return {f"{ours}.{part}": stack(f"{theirs}.{part}") for part in ("weight", "bias")}
