"""M2M100, NLLB and mBART-50: any of many languages into any other, each named by a token on both sides."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from export.imports.families.added_tokens import read_added_tokens
from export.imports.families.bart import (
    HARMLESS,
    list_weights,
    plan_joint_embedding,
    plan_layers,
    plan_norms,
    plan_output_bias,
    plan_positions,
    read_activation,
    read_search,
    read_sizes,
)
from export.imports.families.pieces import read_model, read_pieces, table
from export.imports.families.positions import tensor2tensor
from export.imports.foreign import TRANSFORMERS, ForeignModel
from export.imports.formats.tensors import LazyTensor
from export.imports.languages import GivenLanguages, by_code, choose_among
from export.imports.licences import UNKNOWN, read_licence
from export.imports.report import Report
from export.imports.settings import ForeignSettings, missing_files, read_settings
from export.imports.weights import Plan, Rows, Stack
from model.config import TransformerConfig
from server.bundle.languages import Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import SOURCE_MODEL_FILE, SOURCE_PIECES_FILE

MODEL_TYPES = ("m2m_100", "mbart")
_SPM = "sentencepiece.bpe.model"
_FAIRSEQ_FIRST = ("<s>", "<pad>", "</s>", "<unk>")  # before SentencePiece's own from 3 on
_LEARNED_OFFSET = 2  # rows of mBART's positions that stand for nothing
_SINUSOIDAL_FIRST = 2  # fairseq counts positions from the padding id + 1
_MOST_FILLER = 64


@dataclass(frozen=True, slots=True)
class Kind:
    """What tells the families apart.

    Attributes:
        name: for people.
        language: of the name of a language's token; the first group is the language.
        licence: where the directory says nothing.
        has_table: pieces come from vocab.json, not from SentencePiece's ids.
    """

    name: str
    language: re.Pattern[str]
    licence: str
    has_table: bool = False

    def languages(self, tokens: Mapping[str, int]) -> dict[str, int]:
        """Returns the id of each language's token by the model's name of the language, given all tokens."""
        return {match[1]: token for name, token in tokens.items() if (match := self.language.fullmatch(name))}


_M2M100 = Kind("M2M100", re.compile(r"__([a-z]{2,3})__"), UNKNOWN, has_table=True)
_NLLB = Kind("NLLB", re.compile(r"([a-z]{3}_[A-Z][a-z]{3})"), "cc-by-nc-4.0")
_MBART = Kind("mBART-50", re.compile(r"([a-z]{2}_[A-Z]{2})"), UNKNOWN)
KINDS = (_M2M100, _NLLB, _MBART)


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    pieces: list[str]
    tokens: dict[str, int]  # of languages, by the model's name of each
    files: dict[str, bytes]


def read(directory: Path, config: ForeignSettings, given: GivenLanguages, report: Report) -> ForeignModel | None:
    """Reads a directory; see `hugging_face_marian.read`."""
    is_mbart = config.text("model_type") == "mbart"
    kind = _MBART if is_mbart else _M2M100 if (directory / "vocab.json").exists() else _NLLB
    generation = read_settings(directory, "generation_config.json", report, is_optional=True)
    _check_tokenizer(directory, kind, report)
    vocabulary = _read_vocabulary(directory, kind, config, report)
    tensors = list_weights(directory, report)
    network = _read_network(config, kind, report)
    if network is None or vocabulary is None:
        return None
    search, max_target, suppressed = read_search(generation, config, network)
    forced = generation.get("forced_bos_token_id", config.get("forced_bos_token_id", None))
    config.finish(HARMLESS)
    return ForeignModel(
        family=kind.name,
        reference=TRANSFORMERS,
        name=directory.resolve().name,
        config=network,
        plan=_plan(network, tensors, is_mbart),
        tensors=tensors,
        tokenizer=vocabulary.files,
        languages=read_languages(vocabulary.tokens, given, report, file="tokenizer.json", forced=forced),
        suppressed=suppressed,
        search=search,
        max_source_tokens=network.max_positions,
        max_target_tokens=max_target,
        origin={"licence": read_licence(directory, report, kind.licence)},
    )


def _check_tokenizer(directory: Path, kind: Kind, report: Report) -> None:
    settings = read_settings(directory, "tokenizer_config.json", report, is_optional=True)
    remedy = "this model wants its language behind the sentence; train it on in the newer form, language first"
    settings.expect("legacy_behaviour", False, remedy=remedy)
    if kind is _MBART and settings.text("tokenizer_class", "MBart50Tokenizer").removesuffix("Fast") == "MBartTokenizer":
        settings.fault(
            "tokenizer_class", "MBart50Tokenizer", remedy="mBART-25 has another form of input; mBART-50 is read"
        )


def _read_vocabulary(directory: Path, kind: Kind, config: ForeignSettings, report: Report) -> _Vocabulary | None:
    files = [_SPM, *(["vocab.json"] if kind.has_table else [])]
    if missing_files(directory, files, report, "a tokenizer.json alone is not enough: add the SentencePiece model"):
        return None
    model, processor = read_model(directory, _SPM, report)
    if kind.has_table:
        pieces = read_pieces(directory, "vocab.json", report)
    elif report.faults:
        return None
    else:
        own = [processor.id_to_piece(token) for token in range(3, processor.vocab_size())]
        pieces = [*_FAIRSEQ_FIRST, *own]
    num_rows = config.whole("vocab_size", least=1)
    if len(pieces) > num_rows:
        report.fault(files[-1], found=f"{len(pieces)} pieces", expected=f"at most {num_rows}, as config.json says")
    added = read_added_tokens(directory, len(pieces), num_rows, report)
    tokens = kind.languages(added)
    if not tokens:
        remedy = "add tokenizer.json or special_tokens_map.json of the original model"
        report.fault("tokenizer.json", found="no tokens of languages", expected="their names and ids", remedy=remedy)
    table_size = max(len(pieces), *added.values()) + 1 if added else len(pieces)
    filler = num_rows - table_size
    if filler > _MOST_FILLER:
        report.fault(
            "config.json", "vocab_size", found=num_rows, expected=f"about {table_size}, of which there are tokens"
        )
    # Whatever has been added stands for no text; so do rows that fill the embedding up.
    control = {*_FAIRSEQ_FIRST, *added, *(piece for piece in pieces if piece.startswith("madeupword"))}
    data = {SOURCE_MODEL_FILE: model, SOURCE_PIECES_FILE: table(pieces, control)}
    return _Vocabulary(pieces, tokens, data)


def _read_network(config: ForeignSettings, kind: Kind, report: Report) -> TransformerConfig | None:
    for key in ("normalize_before", "add_final_layer_norm", "normalize_embedding"):
        config.expect(key, True, remedy="no model of this type computes that")
    config.expect("tie_word_embeddings", True)
    num_rows = config.whole("vocab_size", least=8)
    ids = {
        key: config.whole(f"{key}_token_id", default, most=num_rows - 1) for key, default in (("pad", 1), ("eos", 2))
    }
    start = config.whole("decoder_start_token_id", 2, most=num_rows - 1)
    if start != ids["eos"]:
        config.fault("decoder_start_token_id", f"{ids['eos']}, which is eos: the target's language follows it")
    if ids["pad"] != 1:
        config.fault("pad_token_id", "1, as its positions are counted")
    sizes = read_sizes(config)
    activation = read_activation(config)
    max_positions = config.whole("max_position_embeddings", 1024, least=8, most=2**13)
    if report.faults:
        return None
    return TransformerConfig(
        vocab_size=num_rows,
        max_positions=max_positions,
        norm="pre",
        embedding_norm=kind is _MBART,
        positions="table",
        activation=activation,  # type: ignore[arg-type]  # one of `ACTIVATIONS`
        scale_embedding=config.flag("scale_embedding", kind is not _MBART),
        output_bias=True,
        pad_id=ids["pad"],
        unk_id=3,
        bos_id=start,
        eos_id=ids["eos"],
        **sizes,
    )


def _plan(network: TransformerConfig, tensors: dict[str, LazyTensor], is_mbart: bool) -> Plan:
    plan = plan_layers(network) | plan_joint_embedding(tensors) | plan_output_bias(tensors)
    plan |= plan_norms("{}_norm", "model.{}.layer_norm")
    if not is_mbart:
        table = partial(tensor2tensor, network.max_positions, network.d_model, _SINUSOIDAL_FIRST)
        return plan | plan_positions(dict.fromkeys(("encoder", "decoder"), table))
    plan |= plan_norms("{}_embedding_norm", "model.{}.layernorm_embedding")
    for side in ("encoder", "decoder"):
        rows = Rows(f"model.{side}.embed_positions.weight", skip=_LEARNED_OFFSET)
        plan[f"{side}_positions"] = Stack((rows,))
    return plan


def read_languages(
    tokens: Mapping[str, int], given: GivenLanguages, report: Report, *, file: str, forced: object = None
) -> Languages:
    """Returns the languages of a model, each named by a token ahead of source and translation.

    Args:
        tokens: ids by the model's names of the languages.
        given: those that the user has named.
        report: gets the faults.
        file: where the tokens stand.
        forced: id of the only target's token, if there is but one.
    """
    found = by_code({name: name for name in tokens}, file, report)
    target_names = found
    if forced is not None:  # a model into one language
        target_names = {code: name for code, name in found.items() if tokens[name] == forced}
        if not target_names:
            report.fault("config.json", "forced_bos_token_id", found=forced, expected="the token of a language")
    sources = choose_among("source", given.source, found, report)
    targets = choose_among("target", given.target, target_names, report)
    return Languages(
        source={code: SourceLanguage(prefix=(tokens[found[code]],)) for code in sources},
        target={code: TargetLanguage(prefix=(tokens[found[code]],)) for code in targets},
    )
