"""fairseq's own checkpoints of Transformers for translation, with the dictionaries and the tokenizer beside them.

FSMT is the same network as `transformers` has it, so names of tensors are turned into FSMT's (`fairseq_files`). What
FSMT has no variants of is read here: norms, learned positions, shared embeddings.

Source of options and their defaults: fairseq 0.7, 0.9 and 0.12, models/transformer.
"""

from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from export.imports.families.bart import plan_layers, plan_norms
from export.imports.families.byte_pairs import CONTINUED
from export.imports.families.fairseq_files import Checkpoint, read_checkpoint
from export.imports.families.fairseq_options import HARMLESS
from export.imports.families.fairseq_tokenizer import read_dictionary, read_tokenizer
from export.imports.families.fsmt import EMBEDDINGS, EOS_ID, PAD_ID, UNK_ID, is_tied, plan_embeddings
from export.imports.families.positions import tensor2tensor
from export.imports.foreign import ForeignModel
from export.imports.formats.tensors import Tensors
from export.imports.languages import GivenLanguages, choose, language_pairs
from export.imports.licences import read_licence
from export.imports.report import Report
from export.imports.settings import ForeignSettings
from export.imports.weights import Computed, Plan, Rows, Stack
from model.config import TransformerConfig
from server.bundle.manifest import SearchDefaults

_ARCHITECTURES_WORDS = """
    transformer transformer_tiny transformer_iwslt_de_en transformer_wmt_en_de transformer_vaswani_wmt_en_de_big
    transformer_vaswani_wmt_en_fr_big transformer_wmt_en_de_big transformer_wmt_en_de_big_t2t
"""
_ARCHITECTURES = frozenset(_ARCHITECTURES_WORDS.split())
_ACTIVATIONS = ("relu", "gelu")  # named alike; its swish runs in no version
# What changes the network or the text, and the values that leave it as it is here.
_ONLY: dict[str, tuple[Any, ...]] = {
    "task": ("translation",),
    "no_token_positional_embeddings": (False,),
    "adaptive_input": (False,),
    "adaptive_softmax_cutoff": (),
    "cross_self_attention": (False,),
    "no_cross_attention": (False,),
    "layer_wise_attention": (False,),
    "char_inputs": (False,),
    "encoder_layers_to_keep": (),
    "decoder_layers_to_keep": (),
    "base_layers": (0,),
    "quant_noise_pq": (0, 0.0),
    "no_decoder_final_norm": (False,),
    "bpe": ("fastbpe", "subword_nmt", "sentencepiece"),
    "bpe_separator": (CONTINUED,),
    "tokenizer": ("moses", "space"),
    "moses_no_escape": (False,),
}
_POSITIONS = "model.{}.embed_positions.weight"
_FIRST_POSITION = PAD_ID + 1
_SEARCH = SearchDefaults(beam_size=5)  # as fairseq-generate; its rules are ours


def read(directory: Path, given: GivenLanguages, report: Report) -> ForeignModel | None:
    """Reads a directory; returns None where faults leave nothing to go on with."""
    checkpoint = read_checkpoint(directory, report)
    if checkpoint is None:
        return None
    options = ForeignSettings(f"{checkpoint.file}: args", checkpoint.options, report)
    names = [options.text(f"{side}_lang") for side in ("source", "target")]
    sides = _read_dictionaries(directory, options, names, checkpoint, report)
    network = _read_network(options, checkpoint, sides, report)
    sources = choose("source", given.source, names[:1], options.file, report)
    targets = choose("target", given.target, names[1:], options.file, report)
    tokenizer = read_tokenizer(directory, options, sides, (sources, targets), report)
    options.finish(HARMLESS)
    if network is None:
        return None
    return ForeignModel(
        family="fairseq",
        reference="fairseq",
        name=directory.resolve().name,
        config=network,
        plan=_plan(network, checkpoint.tensors),
        tensors=checkpoint.tensors,
        tokenizer=tokenizer,
        language_pairs=language_pairs(sources, targets),
        suppressed=(PAD_ID,),  # as its own search does
        search=_SEARCH,
        max_source_tokens=network.max_positions,
        max_target_tokens=network.max_positions,
        origin={"licence": read_licence(directory, report)},
    )


def _read_dictionaries(
    directory: Path, options: ForeignSettings, names: list[str], checkpoint: Checkpoint, report: Report
) -> tuple[list[str], list[str]]:
    sides: list[list[str]] = []
    for key, name, side in zip(("source_lang", "target_lang"), names, ("encoder", "decoder"), strict=True):
        file = f"dict.{name}.txt"
        if PurePosixPath(name).name != name:
            options.fault(key, "a language, by whose name its dictionary is found")
            sides.append([])
        else:
            shape = _shape(checkpoint.tensors, EMBEDDINGS[side])
            sides.append(read_dictionary(directory, file, shape[0] if shape else 0, report))
    return sides[0], sides[1]


def _read_network(
    options: ForeignSettings, checkpoint: Checkpoint, sides: tuple[list[str], list[str]], report: Report
) -> TransformerConfig | None:
    _check_options(options, report)
    sizes = _read_sizes(options)
    activation = options.text("activation_fn", "relu")
    if activation not in _ACTIVATIONS:
        options.fault("activation_fn", " or ".join(_ACTIVATIONS))
    is_joint = options.flag("share_all_embeddings", False)
    if is_joint and sides[0] != sides[1]:
        options.fault("share_all_embeddings", "false: the two dictionaries differ")
    norms = ["pre" if options.flag(f"{side}_normalize_before", False) else "post" for side in ("encoder", "decoder")]
    final_norm = _read_final_norm(checkpoint, norms, report)
    max_positions = _read_max_positions(options, checkpoint.tensors)
    embedding_norm = options.flag("layernorm_embedding", False)
    scale_embedding = not options.flag("no_scale_embedding", False)
    if report.faults:
        return None
    return TransformerConfig(
        vocab_size=len(sides[1]),
        source_vocab_size=None if is_joint else len(sides[0]),
        max_positions=max_positions,
        encoder_norm=norms[0],  # type: ignore[arg-type]  # "pre" or "post"
        norm=norms[1],  # type: ignore[arg-type]
        final_norm=final_norm,
        embedding_norm=embedding_norm,
        activation=activation,  # type: ignore[arg-type]  # one of `_ACTIVATIONS`
        scale_embedding=scale_embedding,
        tied_output=is_tied(checkpoint.tensors),
        output_bias=True,  # which suppressed ids need
        positions="table",
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=EOS_ID,
        eos_id=EOS_ID,
        **sizes,
    )


def _check_options(options: ForeignSettings, report: Report) -> None:
    for key, accepted in _ONLY.items():
        options.expect(key, *accepted, remedy="nothing here computes that")
    options.flag("share_decoder_input_output_embed", False)  # its tensors say it too
    architecture = options.text("arch")
    if architecture not in _ARCHITECTURES:
        remedy = "if it is one of the others with sizes of its own, pass --allow arch"
        report.unknown(options.file, "arch", architecture or "missing", remedy)


def _read_sizes(options: ForeignSettings) -> dict[str, Any]:
    """Returns the sizes of both sides, named as `TransformerConfig` names them."""
    width = options.whole("encoder_embed_dim", least=8, most=2**14)
    for key in ("decoder_embed_dim", "decoder_input_dim", "decoder_output_dim"):
        options.expect(key, width, remedy="nothing here computes other widths than the encoder's")
    heads = [options.whole(f"{side}_attention_heads", least=1, most=2**8) for side in ("encoder", "decoder")]
    for side, count in zip(("encoder", "decoder"), heads, strict=True):
        if width % (8 * count):
            options.fault(f"{side}_attention_heads", f"a width / heads that is a multiple of 8; the width is {width}")
    return {
        "d_model": width,
        "encoder_num_heads": heads[0],
        "num_heads": heads[1],
        "encoder_layers": options.whole("encoder_layers", least=1, most=2**8),
        "decoder_layers": options.whole("decoder_layers", least=1, most=2**8),
        "encoder_ffn_dim": options.whole("encoder_ffn_embed_dim", least=1, most=2**16),
        "ffn_dim": options.whole("decoder_ffn_embed_dim", least=1, most=2**16),
    }


def _read_final_norm(checkpoint: Checkpoint, norms: list[str], report: Report) -> bool | None:
    """Returns `TransformerConfig.final_norm`: the oldest models have none though their norms are before sub-layers."""
    has_norm = [f"model.{side}.layer_norm.weight" in checkpoint.tensors for side in ("encoder", "decoder")]
    if has_norm == [norm == "pre" for norm in norms]:
        return None
    if has_norm[0] != has_norm[1]:
        found = f"one of {'the encoder' if has_norm[0] else 'the decoder'} alone"
        report.fault(checkpoint.file, "layer_norm", found=found, expected="one of both sides, or of none")
    return has_norm[0]


def _read_max_positions(options: ForeignSettings, tensors: Tensors) -> int:
    """Returns for how many positions there are rows, which both sides have in common."""
    lengths = []
    for side, limit in (("encoder", "max_source_positions"), ("decoder", "max_target_positions")):
        lengths.append(options.whole(limit, 1024, least=8, most=2**20))
        shape = _shape(tensors, _POSITIONS.format(side))
        if options.flag(f"{side}_learned_pos", False) != bool(shape):
            options.fault(f"{side}_learned_pos", str(bool(shape)).lower(), "the tensors say otherwise")
        elif shape:
            lengths.append(shape[0] - _FIRST_POSITION)
    return min(2**13, *lengths)


def _plan(network: TransformerConfig, tensors: Tensors) -> Plan:
    plan = plan_layers(network) | plan_embeddings(network)
    computed = partial(tensor2tensor, network.max_positions, network.d_model, _FIRST_POSITION)
    for side, stack in (("encoder", network.encoder), ("decoder", network.decoder)):
        name = _POSITIONS.format(side)
        plan[f"{side}_positions"] = Computed(computed)
        if name in tensors:
            rest = tensors[name].shape[0] - _FIRST_POSITION - network.max_positions
            plan[f"{side}_positions"] = Stack((Rows(name, skip=_FIRST_POSITION, rest=rest),))
        if stack.has_final_norm:
            plan |= plan_norms(f"{side}_norm", f"model.{side}.layer_norm")
    if network.embedding_norm:
        plan |= plan_norms("{}_embedding_norm", "model.{}.layernorm_embedding")
    return plan


def _shape(tensors: Tensors, name: str) -> tuple[int, ...]:
    return tensors[name].shape if name in tensors else ()
