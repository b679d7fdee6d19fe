"""FSMT: fairseq's models of WMT as `transformers` has them, with Moses and byte-pair encoding."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from export.imports.families.bart import (
    HARMLESS,
    list_weights,
    plan_layers,
    plan_positions,
    read_activation,
    read_search,
    read_sizes,
)
from export.imports.families.byte_pairs import read_merges, write_moses
from export.imports.families.pieces import Vocabularies, check_rows, read_pieces
from export.imports.families.positions import tensor2tensor
from export.imports.foreign import TRANSFORMERS, ForeignModel
from export.imports.formats.tensors import FormatError, Tensors
from export.imports.languages import GivenLanguages, choose, language_pairs
from export.imports.licences import read_licence
from export.imports.report import Report
from export.imports.settings import ForeignSettings, missing_files, read_settings
from export.imports.weights import Plan, Rows, Stack, stack
from model.config import TransformerConfig
from server.bundle.moses import MosesFile

MODEL_TYPE = "fsmt"
FIRST = ("<s>", "<pad>", "</s>", "<unk>")  # of every dictionary of fairseq
PAD_ID, EOS_ID, UNK_ID = (FIRST.index(token) for token in ("<pad>", "</s>", "<unk>"))
_FILES = ("vocab-src.json", "vocab-tgt.json", "merges.txt")
_TOKENIZER_HARMLESS = """
    special_tokens_map_file full_tokenizer_file model_max_length tokenizer_class name_or_path unk_token bos_token
    sep_token pad_token eos_token added_tokens_decoder clean_up_tokenization_spaces additional_special_tokens
    extra_special_tokens src_vocab_file tgt_vocab_file merges_file backend is_local local_files_only
"""


def read(directory: Path, config: ForeignSettings, given: GivenLanguages, report: Report) -> ForeignModel | None:
    """Reads a directory; see `hugging_face_marian.read`."""
    generation = read_settings(directory, "generation_config.json", report, is_optional=True)
    codes = _read_codes(config)
    vocabularies = _read_vocabularies(directory, config, codes, report)
    tensors = list_weights(directory, report)
    is_joint = config.flag("tie_word_embeddings", False)
    network = _read_network(config, generation, tensors, is_joint, report)
    if vocabularies is None or network is None:
        return None
    if is_joint and vocabularies.source != vocabularies.target:
        report.fault(_FILES[1], found="other pieces", expected=f"those of {_FILES[0]}, with which it shares its rows")
    search, max_target, suppressed = read_search(generation, config, network)
    config.finish(HARMLESS)
    sources = choose("source", given.source, codes[:1], "config.json", report)
    targets = choose("target", given.target, codes[1:], "config.json", report)
    return ForeignModel(
        family="fairseq (FSMT)",
        reference=TRANSFORMERS,
        name=directory.resolve().name,
        config=network,
        plan=_plan(network),
        tensors=tensors,
        tokenizer=vocabularies.files,
        language_pairs=language_pairs(sources, targets),
        suppressed=suppressed,
        search=search,
        max_source_tokens=network.max_positions,
        max_target_tokens=max_target,
        origin={"licence": read_licence(directory, report)},
    )


def _read_codes(config: ForeignSettings) -> tuple[str, str]:
    codes = config.get("langs", [])
    if isinstance(codes, list) and len(codes) == 2 and all(isinstance(code, str) for code in codes):
        return codes[0], codes[1]
    config.fault("langs", "the two languages, source first")
    return "", ""


def _read_vocabularies(
    directory: Path, config: ForeignSettings, codes: tuple[str, str], report: Report
) -> Vocabularies | None:
    if missing_files(directory, _FILES, report, "the tokenizer needs it"):
        return None
    sides = []
    for file, key in (("vocab-src.json", "src_vocab_size"), ("vocab-tgt.json", "tgt_vocab_size")):
        pieces = read_pieces(directory, file, report)
        check_rows(pieces, config.whole(key, least=8), file, key, report)
        if pieces and tuple(pieces[:4]) != FIRST:
            report.fault(file, found=f"{pieces[:4]} first", expected=", ".join(FIRST))
        sides.append(pieces)
    tokenizer = read_settings(directory, "tokenizer_config.json", report, is_optional=True)
    tokenizer.expect("langs", list(codes), remedy="config.json says otherwise")
    lower_case = tokenizer.flag("do_lower_case", False)
    tokenizer.finish(_TOKENIZER_HARMLESS.split())
    moses = MosesFile(
        source_language=codes[0],
        target_language=codes[1],
        lower_case=lower_case,
        merges=read_merges(directory, _FILES[2], report),
    )
    files = write_moses(moses, _FILES[2], sides, control_pieces(sides), report)
    return None if report.faults else Vocabularies(source=sides[0], target=sides[1], files=files)


def control_pieces(sides: Sequence[list[str]]) -> set[str]:
    """Returns what stands for no text in dictionaries of fairseq."""
    return {*FIRST, *(piece for side in sides for piece in side if piece.startswith("madeupword"))}


def _read_network(
    config: ForeignSettings, generation: ForeignSettings, tensors: Tensors, is_joint: bool, report: Report
) -> TransformerConfig | None:
    source_size, target_size = (config.whole(key, least=8) for key in ("src_vocab_size", "tgt_vocab_size"))
    for key, token in (("bos", 0), ("pad", 1), ("eos", 2)):
        config.expect(f"{key}_token_id", token)
    start = generation.get("decoder_start_token_id", config.get("decoder_start_token_id", 2))
    if type(start) is not int or not 0 <= start < target_size:
        config.fault("decoder_start_token_id", f"an id below {target_size}")
    config.get("decoder", None)  # the target's vocabulary once more
    sizes = read_sizes(config)
    activation = read_activation(config, default="relu")
    max_positions = config.whole("max_position_embeddings", 1024, least=8, most=2**13)
    if is_joint and source_size != target_size:
        config.fault("tie_word_embeddings", f"false: the vocabularies have {source_size} and {target_size} pieces")
    if report.faults:
        return None
    return TransformerConfig(
        vocab_size=target_size,
        source_vocab_size=None if is_joint else source_size,
        max_positions=max_positions,
        norm="post",
        positions="table",
        activation=activation,  # type: ignore[arg-type]  # one of `ACTIVATIONS`
        scale_embedding=config.flag("scale_embedding", True),
        tied_output=is_tied(tensors),
        output_bias=True,  # which suppressed ids need
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=start,
        eos_id=EOS_ID,
        **sizes,
    )


EMBEDDINGS = {side: f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")}
_OUTPUT = "model.decoder.output_projection.weight"


def is_tied(tensors: Tensors) -> bool:
    """Whether the output is the target's embedding: older files leave it out then, or have it twice."""
    output, embedding = tensors.get(_OUTPUT), tensors.get(EMBEDDINGS["decoder"])
    if output is None or embedding is None:
        return True
    if output.shape != embedding.shape:
        return False
    try:
        return torch.equal(output.load(), embedding.load())
    except FormatError:  # which is said where the weights are loaded
        return False


def _plan(network: TransformerConfig) -> Plan:
    # fairseq counts positions from the padding id + 1.
    positions = partial(tensor2tensor, network.max_positions, network.d_model, network.pad_id + 1)
    tables = dict.fromkeys(("encoder", "decoder"), positions)
    return plan_layers(network) | plan_embeddings(network) | plan_positions(tables)


def plan_embeddings(network: TransformerConfig) -> Plan:
    """Returns which tensors the embeddings and the output are; its bias is there for ids that are suppressed."""
    plan: Plan = {}
    tied = [_OUTPUT] if network.tied_output else []
    if network.source_vocab_size is None:
        tied.append(EMBEDDINGS["encoder"])
    else:
        plan["source_embedding.tokens.weight"] = stack(EMBEDDINGS["encoder"])
    plan["embedding.tokens.weight"] = Stack((Rows(EMBEDDINGS["decoder"]),), same=tuple(tied))
    if not network.tied_output:
        plan["output.weight"] = stack(_OUTPUT)
    plan["output_bias"] = Stack((Rows(None),))
    return plan
