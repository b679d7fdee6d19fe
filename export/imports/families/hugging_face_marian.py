"""Hugging Face's Marian: OPUS-MT, its tc-big generation, and what people have trained on from there."""

import re
from functools import partial
from pathlib import Path

from export.imports.families.bart import (
    HARMLESS,
    list_weights,
    plan_joint_embedding,
    plan_layers,
    plan_output_bias,
    plan_positions,
    plan_separate_embeddings,
    read_activation,
    read_search,
    read_sizes,
)
from export.imports.families.pieces import Vocabularies, check_rows, read_model, read_pieces, table
from export.imports.families.positions import hugging_face_marian
from export.imports.foreign import TRANSFORMERS, ForeignModel
from export.imports.formats.tensors import LazyTensor
from export.imports.languages import GivenLanguages, by_code, choose, choose_among, pair_in_name
from export.imports.licences import read_licence
from export.imports.report import Report
from export.imports.settings import ForeignSettings, missing_files, read_settings
from export.imports.weights import Plan, Rows, Stack, stack
from model.config import TransformerConfig
from server.bundle.languages import Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import SOURCE_MODEL_FILE, SOURCE_PIECES_FILE, TARGET_MODEL_FILE, TARGET_PIECES_FILE

MODEL_TYPE = "marian"
_TARGET_TOKEN = re.compile(r">>(.+)<<")
_CONTROL = ("</s>", "<pad>", "<unk>", "<s>", "<eop>", "<eod>")


def read(directory: Path, config: ForeignSettings, given: GivenLanguages, report: Report) -> ForeignModel | None:
    """Reads a directory; returns None where faults leave nothing to go on with.

    Args:
        directory: with the files of the hub.
        config: its config.json.
        given: languages that the user has named.
        report: gets the faults.
    """
    generation = read_settings(directory, "generation_config.json", report, is_optional=True)
    tokenizer = read_settings(directory, "tokenizer_config.json", report, is_optional=True)
    is_joint = config.flag("share_encoder_decoder_embeddings", True)
    vocabularies = _read_vocabularies(directory, config, is_joint, report)
    if vocabularies is None:
        return None
    tensors = list_weights(directory, report)
    network = _read_network(config, vocabularies, is_joint, report)
    if network is None:
        return None
    search, max_target, suppressed = read_search(generation, config, network)
    config.finish(HARMLESS)
    return ForeignModel(
        family="OPUS-MT (Hugging Face Marian)",
        reference=TRANSFORMERS,
        name=directory.resolve().name,
        config=network,
        plan=_plan(network, tensors, is_joint),
        tensors=tensors,
        tokenizer=vocabularies.files,
        languages=_read_languages(directory, tokenizer, vocabularies, given, report),
        suppressed=suppressed,
        search=search,
        max_source_tokens=network.max_positions,
        max_target_tokens=max_target,
        origin={"licence": read_licence(directory, report)},
    )


def _read_vocabularies(directory: Path, config: ForeignSettings, is_joint: bool, report: Report) -> Vocabularies | None:
    names = ["source.spm", "target.spm", "vocab.json", *([] if is_joint else ["target_vocab.json"])]
    if missing_files(directory, names, report, "a tokenizer.json cannot stand in for it"):
        return None
    source_model, _ = read_model(directory, "source.spm", report)
    target_model, _ = read_model(directory, "target.spm", report)
    source = read_pieces(directory, "vocab.json", report)
    target = source if is_joint else read_pieces(directory, "target_vocab.json", report)
    num_source = config.whole("vocab_size", least=1)
    check_rows(source, num_source, "vocab.json", "vocab_size", report)
    if not is_joint:
        num_target = config.whole("decoder_vocab_size", num_source, least=1)
        check_rows(target, num_target, "target_vocab.json", "decoder_vocab_size", report)
    control = {*_CONTROL, *(piece for piece in source if _TARGET_TOKEN.fullmatch(piece))}
    files = {
        SOURCE_MODEL_FILE: source_model,
        TARGET_MODEL_FILE: target_model,
        SOURCE_PIECES_FILE: table(source, control),
    }
    if not is_joint:
        files[TARGET_PIECES_FILE] = table(target, control)
    return Vocabularies(source, target, files) if source and target else None


def _read_network(
    config: ForeignSettings,
    vocabularies: Vocabularies,
    is_joint: bool,
    report: Report,
) -> TransformerConfig | None:
    for key in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        config.expect(key, False, remedy="no model of this type computes that")
    num_target = len(vocabularies.target)
    config.expect("decoder_vocab_size", num_target)
    ids = {key: config.whole(f"{key}_token_id", most=num_target - 1) for key in ("pad", "eos")}
    start = config.whole("decoder_start_token_id", most=num_target - 1)
    if vocabularies.source.count("<unk>") != 1:
        report.fault("vocab.json", "<unk>", found="missing", expected="the piece for what is unknown")
    sides = {"vocab.json": vocabularies.source, "target_vocab.json": vocabularies.target}
    for file, pieces in sides.items():
        if len(pieces) <= ids["eos"] or pieces[ids["eos"]] != "</s>":
            found = repr(pieces[ids["eos"]]) if len(pieces) > ids["eos"] else "no piece"
            report.fault(file, f"id {ids['eos']}", found=found, expected="</s>, which config.json says it is")
    sizes = read_sizes(config)
    activation = read_activation(config)
    is_tied = config.flag("tie_word_embeddings", True) or is_joint
    max_positions = config.whole("max_position_embeddings", 1024, least=8, most=2**13)
    if report.faults:
        return None
    return TransformerConfig(
        vocab_size=num_target,
        source_vocab_size=None if is_joint else len(vocabularies.source),
        max_positions=max_positions,
        norm="post",
        positions="table",
        activation=activation,  # type: ignore[arg-type]  # one of `ACTIVATIONS`
        scale_embedding=config.flag("scale_embedding", False),
        tied_output=is_tied,
        output_bias=True,
        pad_id=ids["pad"],
        unk_id=vocabularies.source.index("<unk>"),
        bos_id=start,
        eos_id=ids["eos"],
        **sizes,
    )


def _plan(network: TransformerConfig, tensors: dict[str, LazyTensor], is_joint: bool) -> Plan:
    plan = plan_layers(network)
    if is_joint:
        plan |= plan_joint_embedding(tensors)
    else:
        plan |= plan_separate_embeddings(tensors, "lm_head.weight" if network.tied_output else "")
    if not network.tied_output:
        plan["output.weight"] = stack("lm_head.weight")
    plan |= plan_output_bias(tensors)
    positions = partial(hugging_face_marian, network.max_positions, network.d_model)
    plan |= plan_positions(dict.fromkeys(("encoder", "decoder"), positions))
    for side in ("encoder", "decoder"):  # computed, unless the file has them
        name = f"model.{side}.embed_positions.weight"
        if name in tensors:
            plan[f"{side}_positions"] = Stack((Rows(name),))
    return plan


def _read_languages(
    directory: Path, tokenizer: ForeignSettings, vocabularies: Vocabularies, given: GivenLanguages, report: Report
) -> Languages:
    named = pair_in_name(directory) or ("", "")
    source_names, target_names = (
        [name for name in re.split(r"[+, ]+", tokenizer.text(key, default)) if name]
        for key, default in zip(("source_lang", "target_lang"), named, strict=True)
    )
    place = tokenizer.file
    tokens = {}
    for piece in vocabularies.source:
        match = _TARGET_TOKEN.fullmatch(piece)
        if match:
            tokens[match[1]] = piece
    sources = choose("source", given.source, source_names, place, report)
    if len(tokens) < 2:
        targets = {code: TargetLanguage() for code in choose("target", given.target, target_names, place, report)}
    else:
        found = by_code(tokens, "vocab.json", report)
        chosen = choose_among("target", given.target, found, report)
        ids = {piece: token for token, piece in enumerate(vocabularies.source)}
        targets = {code: TargetLanguage(source_prefix=(ids[found[code]],)) for code in chosen}
    return Languages(source={code: SourceLanguage() for code in sources}, target=targets)
