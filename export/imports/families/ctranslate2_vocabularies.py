"""The vocabularies and tokenizer of a CTranslate2 directory, and what they say of its languages."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from export.imports.families.multilingual import KINDS, Kind
from export.imports.families.pieces import read_models
from export.imports.formats.json_files import read_bytes, read_json, read_vocabulary
from export.imports.formats.tensors import FormatError, Tensors
from export.imports.languages import GivenLanguages, choose, language_pairs, pair_in_name
from export.imports.report import Report
from export.imports.settings import ForeignSettings
from server.bundle.languages import LanguagePair

FILE = "model.bin"
_SOURCE_EMBEDDINGS = ("encoder/embeddings_0/weight", "encoder/embeddings/weight")
ReadTokenizer = Callable[[list[list[str]]], dict[str, bytes]]  # of pieces of source and target by id
_LIST_BYTES = 8 << 20  # NLLB's has 3 MB; that many may take 500 MB of memory
_LEAST_LANGUAGES = 10  # tokens: fewer may be pieces of text


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabularies:
    """What a directory says beside the network.

    Attributes:
        tokenizer: files of the bundle.
        num_source, num_target: pieces of each side.
        num_rows: of the network: one more than either, to pad with.
        is_joint: source and target have one embedding.
        is_tied: the output projection is the target's embedding.
        source_embedding: name of its tensor.
        width: of the network.
        unk_id, eos_id, start_id: by their names.
        source_prefix: ids before every source sentence.
        source_eos: whether eos ends it.
        kind: of the families of many languages, if it is of one; `language_tokens` are the ids of its tokens then.
    """

    tokenizer: dict[str, bytes]
    num_source: int
    num_target: int
    is_joint: bool
    is_tied: bool
    source_embedding: str
    width: int
    unk_id: int
    eos_id: int
    start_id: int
    source_prefix: tuple[int, ...]
    source_eos: bool
    kind: Kind | None
    language_tokens: dict[str, int]

    @property
    def num_rows(self) -> int:
        """Rows of each embedding."""
        return max(self.num_source, self.num_target) + 1


def read_vocabularies(
    directory: Path,
    config: ForeignSettings,
    tensors: Tensors,
    report: Report,
    read_tokenizer: ReadTokenizer | None = None,
) -> Vocabularies | None:
    """Reads what there is beside model.bin; None if there are faults.

    Args:
        directory: of the model.
        config: its config.json.
        tensors: of model.bin.
        report: gets the faults.
        read_tokenizer: in place of what reads SentencePiece models.
    """
    pieces = [read_side(directory, side, report) for side in ("source", "target")]
    kind, languages = _find_languages(pieces)
    source_embedding = next((name for name in _SOURCE_EMBEDDINGS if name in tensors), _SOURCE_EMBEDDINGS[0])
    sides = [tensors.get(name) for name in (source_embedding, "decoder/embeddings/weight")]
    output = tensors.get("decoder/projection/weight")
    if None in sides or output is None or any(tensor is None or len(tensor.shape) != 2 for tensor in sides):
        report.fault(FILE, found="no embeddings", expected="those of an encoder and a decoder, and a projection")
        return None
    for side, own, tensor in zip(("source", "target"), pieces, sides, strict=True):
        if own and tensor is not None and len(own) != tensor.shape[0]:
            report.fault(
                f"{side}_vocabulary", found=f"{len(own)} pieces", expected=f"{tensor.shape[0]}, rows of {FILE}"
            )
    if read_tokenizer is not None:
        tokenizer = read_tokenizer(pieces)
    else:
        tokenizer = read_models(directory, pieces, {pieces[1][token] for token in languages.values()}, report)
    ids = _read_ids(config, pieces, report)
    starts_from_zero = tensors.get("decoder/start_from_zero_embedding")
    is_marian = starts_from_zero is not None and bool(starts_from_zero.load().any())
    if kind is not None and ids["decoder_start_token"] != ids["eos_token"]:
        found = config.text("decoder_start_token", "nothing")
        remedy = f"{kind.name} has languages for tokens; convert the original with a later CTranslate2"
        report.fault("config.json", "decoder_start_token", found=found, expected="that of eos_token", remedy=remedy)
    if report.faults or sides[0] is None or sides[1] is None:
        return None
    return Vocabularies(
        tokenizer=tokenizer,
        num_source=len(pieces[0]),
        num_target=len(pieces[1]),
        is_joint=sides[0] is sides[1],
        is_tied=output is sides[1],
        source_embedding=source_embedding,
        width=sides[1].shape[1],
        unk_id=ids["unk_token"],
        eos_id=ids["eos_token"],
        start_id=ids["decoder_start_token"],
        source_prefix=(ids["source_bos"],) if "source_bos" in ids else (),
        # Converters from Marian and of many languages leave eos to a tokenizer that adds it.
        source_eos=config.flag("add_source_eos", False) or is_marian or kind is not None,
        kind=kind,
        language_tokens=languages,
    )


def _read_ids(config: ForeignSettings, pieces: list[list[str]], report: Report) -> dict[str, int]:
    """Returns the ids of the tokens that config.json names, by its keys; 0 where there is a fault."""
    source, target = pieces
    bos = config.text("bos_token", "<s>")
    ids = {}
    for key, default in (("unk_token", "<unk>"), ("eos_token", "</s>"), ("decoder_start_token", bos)):
        name = config.text(key, default)
        ids[key] = target.index(name) if name in target else 0
        if name not in target:
            report.fault("config.json", key, found=name, expected="a piece of the target's vocabulary")
        elif key != "decoder_start_token" and (name not in source or source.index(name) != ids[key]):
            report.fault("config.json", key, found=name, expected=f"id {ids[key]} in the source's vocabulary too")
    if config.flag("add_source_bos", False):
        ids["source_bos"] = source.index(bos) if bos in source else 0
        if bos not in source:
            report.fault("config.json", "bos_token", found=bos, expected="a piece of the source's vocabulary")
    return ids


def read_pairs(
    directory: Path, vocabularies: Vocabularies, given: GivenLanguages, report: Report
) -> tuple[LanguagePair, ...]:
    """Returns the directions: what the user says, or the directory's name."""
    named = pair_in_name(directory)
    sides = []
    for i, (side, codes) in enumerate((("source", given.source), ("target", given.target))):
        sides.append(choose(side, codes, named[i : i + 1] if named else (), "config.json", report))
    return language_pairs(sides[0], sides[1], vocabularies.source_prefix)


def _find_languages(pieces: list[list[str]]) -> tuple[Kind | None, dict[str, int]]:
    """Returns of which family of many languages a vocabulary is, by the names of its tokens, and their ids."""
    ids = {piece: token for token, piece in enumerate(pieces[1])}
    found = {kind: kind.languages(ids) for kind in KINDS} if pieces[0] == pieces[1] else {}
    kind = max(found, key=lambda kind: len(found[kind]), default=None)
    if kind is None or len(found[kind]) < _LEAST_LANGUAGES:
        return None, {}
    return kind, found[kind]


def read_side(directory: Path, side: str, report: Report) -> list[str]:
    """Returns the pieces of a side, "source" or "target", by id; a fault makes it empty."""
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        for suffix in (".json", ".txt"):
            path = directory / f"{name}{suffix}"
            if not path.is_file():
                continue
            try:
                if suffix == ".json":
                    return read_vocabulary(read_json(path))
                return read_bytes(path, _LIST_BYTES).decode().removesuffix("\n").split("\n")
            except (FormatError, UnicodeDecodeError) as error:
                report.fault(path.name, found=error)
                return []
    report.fault(f"{side}_vocabulary.json", found="missing", expected="it, or shared_vocabulary.json")
    return []
