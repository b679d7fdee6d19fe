"""What a checkpoint of OpenNMT-py holds: weights, options and vocabularies, by either of two layouts.

Version 3 writes vocabularies as lists of pieces. Those before wrote objects of torchtext, older ones a list of them:
these are read as `StandIn`s, which have their contents and none of their code.
"""

import re
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.imports.formats.safetensors import list_safetensors
from export.imports.formats.tensors import FormatError, LazyTensor, bytes_of_strangers
from export.imports.formats.torch_files import StandIn, load_torch, tensors_of
from export.imports.report import Report, keys_of, name_of

_PARTS = ("opt", "vocab")
_KNOWN = (*_PARTS, "model", "generator", "optim", "epoch")
_OLD_NORM = re.compile(r"(.*\.layer_norm(?:_\d)?)\.(a_2|b_2)")
_TORCHTEXT_WORDS = """
    vocab.Vocab vocab.SubwordVocab data.field.RawField data.field.Field data.field.LabelField data.field.NestedField
    data.pipeline.Pipeline data.utils._split_tokenizer
"""
_OTHERS_WORDS = """
    onmt.inputters.text_dataset.TextMultiField onmt.inputters.text_dataset._feature_tokenize
    onmt.inputters.inputter.make_src onmt.inputters.inputter.make_tgt onmt.inputters.inputter.AlignField
    onmt.inputters.inputter.parse_align_idx onmt.inputters.fields.TextMultiField
    onmt.inputters.fields._feature_tokenize functools.partial collections.defaultdict
"""
_STAND_INS = [
    *(f"{package}.{name}" for package in ("torchtext", "torchtext.legacy") for name in _TORCHTEXT_WORDS.split()),
    *_OTHERS_WORDS.split(),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint that has been read but for its weights.

    Attributes:
        file: its name.
        tensors: of the network; those of the output begin with "generator.".
        options: by which it was trained.
        source, target: pieces by id.
        start_token: that translations begin with.
    """

    file: str
    tensors: dict[str, LazyTensor]
    options: dict[str, Any]
    source: list[str]
    target: list[str]
    start_token: str


def read_checkpoint(directory: Path, report: Report) -> Checkpoint | None:
    """Reads the only checkpoint of a directory; None if there are faults."""
    paths = sorted(directory.glob("*.pt"))
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths[:4])
        report.fault(names, found=f"{len(paths)} checkpoints", expected="one", remedy="name one of them")
        return None
    (path,) = paths
    try:
        document = load_torch(path, _STAND_INS)
        if not isinstance(document, Mapping) or not all(part in document for part in _PARTS):
            raise FormatError(f"holds {keys_of(document)}, not what OpenNMT-py writes: {', '.join(_KNOWN)}")
        options = document["opt"]
        if not isinstance(options, Namespace):
            raise FormatError("has options that are none")
        for key in document:
            if key not in _KNOWN:
                report.unknown(path.name, name_of(key), type(document[key]).__name__)
        with bytes_of_strangers("has vocabularies in no form that is known"):
            vocabularies = _read_vocabularies(document["vocab"])
        tensors = _list_tensors(path, document)
    except FormatError as error:
        report.fault(path.name, found=error)
        return None
    named = {name_of(key): value for key, value in vars(options).items()}
    return Checkpoint(file=path.name, tensors=tensors, options=named, **vocabularies)


def _list_tensors(path: Path, document: Mapping[str, Any]) -> dict[str, LazyTensor]:
    if "model" not in document:  # version 3 may put the weights beside it
        return list_safetensors(path.with_suffix(".safetensors"))
    tensors = tensors_of(path, document["model"])
    for name, tensor in tensors_of(path, document.get("generator")).items():
        tensors[f"generator.{name.removeprefix('0.')}"] = tensor  # once it was the first of a sequence
    renamed = {}
    for name, tensor in tensors.items():
        old = _OLD_NORM.fullmatch(name)
        part = {"a_2": "weight", "b_2": "bias"}.get(old[2], "") if old else ""
        renamed[f"{old[1]}.{part}" if old else name] = tensor
    return renamed


def _read_vocabularies(vocab: Any) -> dict[str, Any]:
    if isinstance(vocab, Mapping) and isinstance(vocab.get("src"), list):
        if vocab.get("src_feats"):
            raise FormatError("has features of words (src_feats), which nothing here computes")
        if vocab.get("data_task", "seq2seq") != "seq2seq":
            raise FormatError(f"is for the task {name_of(vocab['data_task'])}, not for translation (seq2seq)")
        start = vocab.get("decoder_start_token", "<s>")
        if not isinstance(start, str):
            raise FormatError("has a decoder_start_token that is no text")
        sides = [vocab["src"], vocab.get("tgt")]
    else:
        sides, start = [_old_vocabulary(vocab, side) for side in ("src", "tgt")], "<s>"
    for side in sides:
        if not isinstance(side, list) or not all(isinstance(piece, str) for piece in side):
            raise FormatError("has vocabularies in no form that is known")
        "".join(side).encode()  # a pickle may have lone surrogates, which are no text
    return {"source": sides[0], "target": sides[1], "start_token": start}


def _old_vocabulary(vocab: Any, side: str) -> Any:
    """Returns the pieces of a side: of its field, that field's only part, or of a pair of its name with either."""
    fields = dict(vocab) if isinstance(vocab, list) and all(_is_pair(each) for each in vocab) else vocab
    found = fields.get(side) if isinstance(fields, Mapping) else None
    for _ in range(4):  # a field in a field, and its vocabulary
        state = found.state if isinstance(found, StandIn) else None
        if not isinstance(state, Mapping):
            break
        if isinstance(state.get("itos"), list):
            return state["itos"]
        parts = state.get("fields")
        if isinstance(parts, list) and len(parts) > 1:
            raise FormatError("has features of words, which nothing here computes")
        found = parts[0][1] if isinstance(parts, list) and parts and _is_pair(parts[0]) else state.get("vocab")
    raise FormatError(f"has no vocabulary {side} in a form that is known")


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2
