"""Marian's own models: .npz, or .bin as Bergamot and Mozilla ship them, decoders with attention or SSRU."""

from pathlib import Path

from export.imports.families.marian_files import UNK, Files, find_files, read_pairs, read_tokenizer
from export.imports.families.marian_network import HARMLESS, plan_weights, read_network
from export.imports.foreign import ForeignModel
from export.imports.formats.json_files import MAX_SETTINGS_BYTES
from export.imports.formats.marian_bin import list_marian, read_lexical
from export.imports.formats.npz import list_npz
from export.imports.formats.tensors import FormatError, LazyTensor
from export.imports.formats.yaml_files import parse_yaml
from export.imports.languages import GivenLanguages
from export.imports.lexical import shortlist_of
from export.imports.licences import read_licence
from export.imports.report import Report
from export.imports.settings import ForeignSettings
from server.bundle.shortlist import Shortlist

_SETTINGS = "special:model.yml"
_SCALE = "_QuantMultA"  # of an activation, which intgemm has found beforehand


def is_here(directory: Path) -> bool:
    """Whether a directory has what Marian writes, and Bergamot ships."""
    return any(directory.glob("*.npz")) or any(path.name != "model.bin" for path in directory.glob("model*.bin"))


def read(directory: Path, given: GivenLanguages, report: Report) -> ForeignModel | None:
    """Reads a directory; returns None where faults leave nothing to go on with."""
    files = find_files(directory, report)
    if files is None:
        return None
    tensors = _list(directory / files.model, report)
    settings = _read_settings(files.model, tensors, report)
    sizes = _read_vocabulary_sizes(settings) if settings is not None else None
    if settings is None or sizes is None:
        return None
    tokenizer = read_tokenizer(directory, files, sizes, report)
    network = read_network(settings, sizes, report)
    if network is None:
        return None
    plan = plan_weights(network, settings, sizes)
    settings.finish(HARMLESS)
    weights = {name: each for name, each in tensors.items() if name != _SETTINGS and not name.endswith(_SCALE)}
    return ForeignModel(
        reference="marian-decoder, or bergamot-translator for models of Bergamot and Mozilla",
        family="Marian with SSRU" if network.decoder_mixer == "ssru" else "Marian",
        name=directory.resolve().name,
        config=network,
        plan=plan,
        tensors=weights,
        tokenizer=tokenizer,
        language_pairs=read_pairs(directory, files, given, report),
        suppressed=(*(() if files.allows_unk else (UNK,)), *range(sizes[1], network.vocab_size)),
        search=files.search,
        max_source_tokens=network.max_positions,
        max_target_tokens=network.max_positions,
        shortlist=_read_shortlist(directory, files, sizes, network.vocab_size, report),
        origin={"licence": read_licence(directory, report)},
    )


def _list(path: Path, report: Report) -> dict[str, LazyTensor]:
    try:
        return list_npz(path) if path.suffix == ".npz" else list_marian(path)
    except FormatError as error:
        report.fault(path.name, found=error)
        return {}


def _read_settings(file: str, tensors: dict[str, LazyTensor], report: Report) -> ForeignSettings | None:
    if not tensors:
        return None
    if _SETTINGS not in tensors:
        report.fault(file, _SETTINGS, found="missing", expected="the settings that Marian writes into its models")
        return None
    if tensors[_SETTINGS].num_elements > MAX_SETTINGS_BYTES:
        found = f"{tensors[_SETTINGS].num_elements} numbers"
        report.fault(file, _SETTINGS, found=found, expected=f"at most {MAX_SETTINGS_BYTES}")
        return None
    try:
        text = tensors[_SETTINGS].load().numpy().tobytes().rstrip(b"\0")
        return ForeignSettings(f"{file}: {_SETTINGS}", parse_yaml(text), report)
    except FormatError as error:
        report.fault(file, _SETTINGS, found=error)
        return None


def _read_vocabulary_sizes(settings: ForeignSettings) -> list[int] | None:
    sizes = settings.get("dim-vocabs", None)
    if isinstance(sizes, list) and len(sizes) == 2 and all(type(size) is int and 1 < size < 2**20 for size in sizes):
        return sizes
    settings.fault("dim-vocabs", "the sizes of two vocabularies")
    return None


def _read_shortlist(
    directory: Path, files: Files, sizes: list[int], vocab_size: int, report: Report
) -> Shortlist | None:
    if files.shortlist is None or report.faults:
        return None
    try:
        first, candidates = read_lexical(directory / files.shortlist, sizes[0])
        return shortlist_of(first, candidates, vocab_size, sizes[1])
    except FormatError as error:
        report.fault(files.shortlist, found=error, remedy="or take it away: the model works without")
        return None
