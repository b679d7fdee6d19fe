"""Which files of a directory are a Marian model's, and its vocabularies and ways to search."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.imports.families.pieces import read_model, table
from export.imports.formats.json_files import read_vocabulary
from export.imports.formats.tensors import FormatError
from export.imports.formats.yaml_files import read_yaml
from export.imports.languages import GivenLanguages, choose, joined_pair, language_pairs, pair_in_name
from export.imports.report import Report
from export.imports.settings import ForeignSettings
from server.bundle.languages import LanguagePair
from server.bundle.manifest import (
    SOURCE_MODEL_FILE,
    SOURCE_PIECES_FILE,
    TARGET_MODEL_FILE,
    TARGET_PIECES_FILE,
    SearchDefaults,
)

EOS, UNK = 0, 1
_CONTROL = ("</s>", "<unk>")
_NOT_SEARCHED_WORDS = """
    relative-paths models vocabs shortlist mini-batch mini-batch-words maxi-batch maxi-batch-sort workspace
    max-length-factor max-length max-length-crop max-length-break gemm-precision gemm-type quiet quiet-translation
    cpu-threads skip-cost alignment log log-level cache-size max-cache-size ssplit-mode ssplit-prefix-file version
    config weights seed devices type skip-load mini-batch-overstuffed
"""
_NOT_SEARCHED = frozenset(_NOT_SEARCHED_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a model, by name.

    Attributes:
        vocabularies: of source and target; the same where they share one.
        shortlist: a binary one, or None.
        search, allows_unk: what the decoder's settings say.
    """

    model: str
    vocabularies: tuple[str, str]
    shortlist: str | None
    search: SearchDefaults
    allows_unk: bool


def find_files(directory: Path, report: Report) -> Files | None:
    """Finds a model's files: those that its decoder's settings name, or else the only ones that they could be."""
    settings = _read_settings(directory, report)
    names = sorted(path.name for path in directory.iterdir() if path.is_file())
    model = _one(settings, "models", r"model.*\.bin|.*\.npz", names, report)
    given = settings.get("vocabs", None)
    vocabularies = given if isinstance(given, list) and len(given) == 2 else _find_vocabularies(names)
    shortlist = settings.get("shortlist", None)
    shortlist = shortlist[0] if isinstance(shortlist, list) and shortlist else None
    if shortlist is None:
        found = [name for name in names if re.fullmatch(r"lex.*\.bin", name)]
        shortlist = found[0] if len(found) == 1 else None
    if not vocabularies:
        report.fault(directory.resolve().name, found="no vocabulary", expected="vocab.*.spm, or settings that name it")
    if model is None or not vocabularies:
        return None
    for name in [*vocabularies, *([shortlist] if shortlist else [])]:
        if not isinstance(name, str) or Path(name).name != name or name not in names:
            report.fault(settings.file, found=repr(name), expected="a file beside it, unpacked")
            return None
    return Files(
        model=model,
        vocabularies=(vocabularies[0], vocabularies[1]),
        shortlist=shortlist,
        search=_read_search(settings),
        allows_unk=settings.flag("allow-unk", False),
    )


def read_tokenizer(directory: Path, files: Files, sizes: list[int], report: Report) -> dict[str, bytes]:
    """Returns the tokenizer's files for the bundle; notes what does not fit.

    Args:
        directory: of the model.
        files: of it.
        sizes: rows that the model has for source and target.
        report: gets the faults.
    """
    if all(name.endswith(".spm") for name in files.vocabularies):
        return _own_ids(directory, files, sizes, report)
    if all(name.endswith((".yml", ".yaml")) for name in files.vocabularies):
        return _tables(directory, files, sizes, report)
    report.fault(files.vocabularies[0], found="a vocabulary of another kind", expected=".spm, or .yml with source.spm")
    return {}


def read_pairs(directory: Path, files: Files, given: GivenLanguages, report: Report) -> tuple[LanguagePair, ...]:
    """Returns the directions: what the user says, or the name of the model, of the directory or of a vocabulary."""
    named = joined_pair(files.model) or pair_in_name(directory)
    if named is None and files.vocabularies[0] != files.vocabularies[1]:  # that of both sides serves either direction
        named = joined_pair(files.vocabularies[0])
    sides = []
    for i, (side, codes) in enumerate((("source", given.source), ("target", given.target))):
        sides.append(choose(side, codes, named[i : i + 1] if named else (), files.model, report))
    return language_pairs(sides[0], sides[1])


def _read_settings(directory: Path, report: Report) -> ForeignSettings:
    candidates = [*sorted(directory.glob("config*.yml")), *sorted(directory.glob("decoder.yml"))]
    if not candidates:
        return ForeignSettings("decoder.yml", {}, report)
    try:
        return ForeignSettings(candidates[0].name, read_yaml(candidates[0]), report)
    except FormatError as error:
        report.fault(candidates[0].name, found=error)
        return ForeignSettings(candidates[0].name, {}, report)


def _one(settings: ForeignSettings, key: str, pattern: str, names: list[str], report: Report) -> str | None:
    given: Any = settings.get(key, None)
    found = [name for name in names if re.fullmatch(pattern, name)]
    listed = ", ".join(found) if found else "none"
    if isinstance(given, list) and given:
        if len(given) > 1 or not isinstance(given[0], str):
            settings.fault(key, "one model", "ensembles are not supported: import one of them")
        elif given[0] not in names:
            settings.fault(key, f"a file beside it, unpacked; model files: {listed}", f"name that, or mend {key}")
        return given[0] if given[0] in names else None
    if len(found) != 1:
        report.fault(settings.file, found=f"model files: {listed}", expected="one", remedy="name one of them")
        return None
    return found[0]


def _find_vocabularies(names: list[str]) -> list[str]:
    joint = [name for name in names if re.fullmatch(r"vocab.*\.spm|.*vocab\.ya?ml", name)]
    sides = [[name for name in names if re.fullmatch(rf"{side}vocab.*\.spm", name)] for side in ("src", "trg")]
    if all(len(side) == 1 for side in sides):
        return [sides[0][0], sides[1][0]]
    return joint * 2 if len(joint) == 1 else []


def _read_search(settings: ForeignSettings) -> SearchDefaults:
    settings.expect("word-penalty", 0, 0.0, remedy="translations are not paid for by the word here")
    normalize = settings.get("normalize", 0)
    has_power = type(normalize) is not bool
    defaults = SearchDefaults(
        beam_size=min(settings.whole("beam-size", 12, least=1, most=1024), 16),
        length_penalty=settings.number("normalize", 0, least=0, most=10) if has_power else float(normalize),
    )
    settings.expect("n-best", False)
    settings.get("allow-unk", None)
    settings.finish(_NOT_SEARCHED)
    return defaults


def _own_ids(directory: Path, files: Files, sizes: list[int], report: Report) -> dict[str, bytes]:
    data: dict[str, bytes] = {}
    for file, bundle_file, size in zip(files.vocabularies, (SOURCE_MODEL_FILE, TARGET_MODEL_FILE), sizes, strict=True):
        model, processor = read_model(directory, file, report)
        if not report.faults and processor.vocab_size() != size:
            report.fault(file, found=f"{processor.vocab_size()} pieces", expected=f"{size}, as the model has rows")
        if not report.faults and (processor.eos_id(), processor.unk_id()) != (EOS, UNK):
            found = f"eos {processor.eos_id()} and unk {processor.unk_id()}"
            report.fault(file, found=found, expected=f"{EOS} and {UNK}")
        data[bundle_file] = model
    if len(set(data.values())) == 1:
        data.pop(TARGET_MODEL_FILE)
    return data


def _tables(directory: Path, files: Files, sizes: list[int], report: Report) -> dict[str, bytes]:
    """Reads OPUS-MT's native models: pieces of source.spm and target.spm, numbered by a YAML file."""
    data: dict[str, bytes] = {}
    for file, bundle_file in (("source.spm", SOURCE_MODEL_FILE), ("target.spm", TARGET_MODEL_FILE)):
        data[bundle_file], _ = read_model(directory, file, report)
    for file, bundle_file, size in zip(
        files.vocabularies, (SOURCE_PIECES_FILE, TARGET_PIECES_FILE), sizes, strict=True
    ):
        try:
            pieces = read_vocabulary(read_yaml(directory / file))
        except FormatError as error:
            report.fault(file, found=error)
            continue
        if len(pieces) != size or pieces[EOS] != "</s>" or pieces[UNK] != "<unk>":
            found = f"{len(pieces)} pieces, of which {pieces[:2]} are first"
            report.fault(file, found=found, expected=f"{size}, </s> and <unk> first")
        control = {*_CONTROL, *(piece for piece in pieces if re.fullmatch(">>.+<<", piece))}
        data[bundle_file] = table(pieces, control)
    if files.vocabularies[0] == files.vocabularies[1]:
        data.pop(TARGET_PIECES_FILE, None)
    return data
