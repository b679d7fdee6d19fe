"""`manifest.json` read and checked, with every fault reported at once."""

import dataclasses
import logging
import math
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from server.bundle.codes import canonical_code
from server.bundle.confidence import Confidence
from server.bundle.family import family_faults
from server.bundle.files import read_file
from server.bundle.graphs import ALIGNER_FILE, MAX_BEAM_SIZE
from server.bundle.languages import Ids
from server.bundle.manifest import (
    MANIFEST_FILE,
    MOSES_FILE,
    REVISION,
    SEAL_FILE,
    SHORTLIST_FILE,
    SOURCE_MODEL_FILE,
    SOURCE_PIECES_FILE,
    TOKENIZER_FILE,
    Manifest,
    seal,
)
from server.bundle.masking import MAX_CODE_CHARACTERS, MAX_CODES, MAX_PLACEHOLDERS, Masking
from server.bundle.old_states import FIRST_WITH_STATES, take_mixer, with_states
from server.bundle.parsing import parse, parse_json
from server.bundle.states import state_faults
from server.bundle.variant_files import Variant
from server.bundle.variants import VARIANTS
from server.decoding.options import MAX_LENGTH_PENALTY
from server.errors import BundleError

logger = logging.getLogger(__name__)

_READABLE = range(4, REVISION + 1)

# Beyond these a manifest is mistaken; much is allocated by what it says, before any graph could contradict it.
_GREATEST = {
    "vocab_size": 2**20,
    "source_vocab_size": 2**20,
    "d_model": 2**14,
    "num_heads": 2**8,
    "head_dim": 2**10,
    "encoder_layers": 2**8,
    "decoder_layers": 2**8,
    "max_source_tokens": 2**13,
    "max_target_tokens": 2**13,
    "max_beam_size": MAX_BEAM_SIZE,
}
_MAX_NAME_CHARACTERS = 128
_MAX_FAULTS = 20  # that are named
# Of a variant, and beside the variants. A bundle has at most seven of each, so half would be almost too few. With twice
# as many, holes in the files could take 1 GB of memory (`MAX_HOLE_BYTES` each).
_MAX_FILES = 16
_PLAIN_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def read_manifest(directory: Path) -> Manifest:
    """Reads the manifest of a bundle; the files that it names are not looked at.

    Raises:
        BundleError: it or its seal cannot be read, they do not agree, or every fault of it.
    """
    path = directory / MANIFEST_FILE
    data = read_file(directory, MANIFEST_FILE)
    if not os.path.lexists(directory / SEAL_FILE):
        logger.warning("the manifest has no seal, %s, to be checked against: export the bundle again", SEAL_FILE)
    elif read_file(directory, SEAL_FILE) != seal(data):
        raise BundleError([f"{path}: is not what {SEAL_FILE} has sealed, or that is damaged"])
    try:
        return parse_manifest(data)
    except BundleError as error:
        raise BundleError([f"{path}: {fault}" for fault in error.faults]) from error


def parse_manifest(data: bytes) -> Manifest:
    """Reads what `MANIFEST_FILE` holds.

    Raises:
        BundleError: it is no JSON of a revision that is read, or its faults.
    """
    try:
        document = parse_json(data)
    except ValueError as error:
        raise BundleError([f"cannot be read: {error}"]) from error
    revision: Any = document.get("revision") if isinstance(document, dict) else None
    if revision not in _READABLE:
        readable = f"{', '.join(map(str, _READABLE[:-1]))} and {REVISION}"
        raise BundleError([f"revision is {revision!s:.20}; this server reads revisions {readable}"])
    faults: list[str] = []
    mixer = take_mixer(document, faults) if revision < FIRST_WITH_STATES else None
    manifest = parse(Manifest, document, "", faults)
    if not faults:
        faults = _check_manifest(manifest)
    if len(faults) > _MAX_FAULTS:
        faults[_MAX_FAULTS:] = [f"and {len(faults) - _MAX_FAULTS} faults more"]
    if faults:
        raise BundleError(faults)
    return manifest if mixer is None else with_states(manifest, mixer)


def _check_manifest(manifest: Manifest) -> list[str]:
    faults = [*_check_sizes(manifest), *state_faults(manifest.states), *family_faults(manifest)]
    faults += [*_check_search(manifest), *_check_languages(manifest)]
    names = [manifest.name, manifest.version, *manifest.source_codes, *manifest.target_codes]
    if not all(name.isprintable() and 0 < len(name) <= _MAX_NAME_CHARACTERS for name in names):
        faults.append(f"name, version and languages must have 1..{_MAX_NAME_CHARACTERS} characters, all printable")
    faults += [f"extra_files: {fault}" for fault in _check_plain(manifest.extra_files)]
    faults += _check_tokenizer(manifest)
    faults += _check_masking(manifest.masking)
    faults += _check_alignment(manifest)
    faults += _check_confidence(manifest.confidence)
    if not manifest.variants:
        faults.append("variants is empty")
    for name, variant in manifest.variants.items():
        faults += [f"variants.{name}{fault}" for fault in _check_variant(name, variant)]
        if variant.has_shortlist and SHORTLIST_FILE not in manifest.extra_files:
            faults.append(f"extra_files lacks {SHORTLIST_FILE}, which steps of variants.{name} need")
        if name not in manifest.golden.outputs:
            faults.append(f"golden.outputs lacks {name}")
    if len({variant.halves for variant in manifest.variants.values()} - {None}) > 1:
        faults.append("variants.*.halves must describe one file, not several")
    return faults + _check_golden(manifest)


def _check_masking(masking: Masking) -> list[str]:
    faults = []
    if not 0 <= (number := masking.num_placeholders) <= MAX_PLACEHOLDERS:
        faults.append(f"masking.num_placeholders must be in 0..{MAX_PLACEHOLDERS}, not {number}")
    if len(masking.codes) > MAX_CODES:
        faults.append(f"masking.codes must be at most {MAX_CODES}, not {len(masking.codes)}")
    limit = f"{MAX_CODE_CHARACTERS} printable ASCII characters"
    return faults + [
        f"masking.codes must each have {{}} once, in at most {limit}, not {code!r:.40}"
        for code in masking.codes
        if code.count("{}") != 1 or len(code) > MAX_CODE_CHARACTERS or not code.isascii() or not code.isprintable()
    ]


def _check_alignment(manifest: Manifest) -> list[str]:
    alignment, sizes = manifest.alignment, manifest.dimensions
    if alignment is None:
        return []
    faults = [
        f"variants.{name}.files lacks {ALIGNER_FILE}, which alignment needs"
        for name, variant in manifest.variants.items()
        if ALIGNER_FILE not in variant.files
    ]
    if not alignment.heads:
        faults.append("alignment.heads is empty")
    for index, head in enumerate(alignment.heads):
        for name, number, size in (
            ("layer", head.layer, sizes.decoder_layers),
            ("head", head.head, sizes.num_heads),
        ):
            if not 0 <= number < size:
                faults.append(f"alignment.heads[{index}].{name} must be in 0..{size - 1}, not {number}")
    return faults


def _check_confidence(confidence: Confidence | None) -> list[str]:
    given = {} if confidence is None else dataclasses.asdict(confidence)
    return [f"confidence.{name} must be a finite number" for name, value in given.items() if not math.isfinite(value)]


def _check_tokenizer(manifest: Manifest) -> list[str]:
    ways = [manifest.tokenizer is not None, *(name in manifest.extra_files for name in (SOURCE_MODEL_FILE, MOSES_FILE))]
    if sum(ways) != 1:
        other = f"extra_files has {SOURCE_MODEL_FILE} or {MOSES_FILE}"
        return [f"either tokenizer describes {TOKENIZER_FILE}, or {other}"]
    if MOSES_FILE in manifest.extra_files and SOURCE_PIECES_FILE not in manifest.extra_files:
        return [f"extra_files lacks {SOURCE_PIECES_FILE}, which {MOSES_FILE} needs"]
    return []


def _check_sizes(manifest: Manifest) -> list[str]:
    sizes = {
        **{f"dimensions.{name}": size for name, size in dataclasses.asdict(manifest.dimensions).items()},
        **{f"limits.{name}": size for name, size in dataclasses.asdict(manifest.limits).items()},
    }
    greatest = {name: _GREATEST.get(name.partition(".")[2], 0) for name in sizes}
    faults = [
        f"{name} must be in 1..{greatest[name]}, not {size}"
        for name, size in sizes.items()
        if isinstance(size, int) and not 1 <= size <= greatest[name]
    ]
    for name, value in dataclasses.asdict(manifest.special_ids).items():
        faults += _check_ids(f"special_ids.{name}", (value,), manifest.dimensions.vocab_size)
    return faults


def _check_search(manifest: Manifest) -> list[str]:
    search, widest = manifest.search, manifest.limits.max_beam_size
    faults = []
    if search.beam_size is not None and not 1 <= search.beam_size <= widest:
        faults.append(f"search.beam_size must be in 1..{widest}, not {search.beam_size}")
    if not 0 <= search.length_penalty <= MAX_LENGTH_PENALTY:
        faults.append(f"search.length_penalty must be in 0..{MAX_LENGTH_PENALTY:g}, not {search.length_penalty:g}")
    return faults


def _check_languages(manifest: Manifest) -> list[str]:
    languages, sizes, limits = manifest.languages, manifest.dimensions, manifest.limits
    if (languages is None) != bool(manifest.language_pairs):
        return ["either language_pairs or languages must say what is translated, and the other be left out"]
    faults = []
    if languages is not None:
        faults += _check_codes("languages.source", languages.source)
        faults += _check_codes("languages.target", languages.target)
    for where, ids in _source_prefixes(manifest).items():
        faults += _check_ids(where, ids, sizes.encoder_vocab_size)
        faults += _check_room(where, ids, "max_source_tokens", limits.max_source_tokens)
    for where, ids in _target_prefixes(manifest).items():
        faults += _check_ids(where, ids, sizes.vocab_size)
        faults += _check_room(where, ids, "max_target_tokens", limits.max_target_tokens)
    return faults


def _source_prefixes(manifest: Manifest) -> dict[str, Ids]:
    if manifest.languages is None:
        return {
            f"language_pairs[{i}].source_prefix": pair.source_prefix for i, pair in enumerate(manifest.language_pairs)
        }
    source, target = manifest.languages.source.items(), manifest.languages.target.items()
    prefixes = {f"languages.source.{code}.prefix": language.prefix for code, language in source}
    return prefixes | {f"languages.target.{code}.source_prefix": language.source_prefix for code, language in target}


def _target_prefixes(manifest: Manifest) -> dict[str, Ids]:
    if manifest.languages is None:
        return {
            f"language_pairs[{i}].target_prefix": pair.target_prefix for i, pair in enumerate(manifest.language_pairs)
        }
    return {f"languages.target.{code}.prefix": language.prefix for code, language in manifest.languages.target.items()}


def _check_room(where: str, prefix: Ids, name: str, limit: int) -> list[str]:
    """A prefix leaves room for a token and eos."""
    too_long = prefix and len(prefix) + 2 > limit
    return [f"{where} has {len(prefix)} ids, too many for limits.{name}, {limit}"] if too_long else []


def _check_codes(where: str, codes: Iterable[str]) -> list[str]:
    faults = []
    for code in codes:
        canonical = canonical_code(code)
        if canonical is None:
            faults.append(f"{where}: {code!r:.40} is no BCP-47 code")
        elif canonical != code:
            faults.append(f"{where}: {code} must be written as BCP-47 has it, {canonical}")
    return faults if codes else [f"{where} is empty"]


def _check_ids(where: str, ids: Iterable[int], vocab_size: int) -> list[str]:
    wrong = [token for token in ids if not 0 <= token < vocab_size]
    return [f"{where} must be in 0..{vocab_size - 1}, not {wrong[0]}"] if wrong else []


def _check_golden(manifest: Manifest) -> list[str]:
    golden, limits = manifest.golden, manifest.limits
    faults = _check_ids("golden.source_ids", golden.source_ids, manifest.dimensions.encoder_vocab_size)
    if not 1 <= golden.beam_size <= limits.max_beam_size:
        faults.append(f"golden.beam_size must be in 1..{limits.max_beam_size}, not {golden.beam_size}")
    if not 1 <= len(golden.source_ids) <= limits.max_source_tokens:
        number = len(golden.source_ids)
        faults.append(f"golden.source_ids must be 1..{limits.max_source_tokens} tokens, not {number}")
    try:
        _ = manifest.golden_pair
    except LookupError as error:
        faults.append(str(error))
    return faults


def _check_variant(name: str, variant: Variant) -> list[str]:
    if name not in VARIANTS:
        return [f": unknown variant; known are {', '.join(VARIANTS)}"]
    faults = [f".files: {fault}" for fault in _check_plain(variant.files)]
    if variant.dtype != VARIANTS[name].dtype:
        faults.append(f".dtype must be {VARIANTS[name].dtype}, not {variant.dtype}")
    if variant.embedding_offset < 0:
        faults.append(f".embedding_offset must be at least 0, not {variant.embedding_offset}")
    if variant.halves is not None and (variant.dtype == "int8" or variant.halves.bytes % 2):
        faults.append(f".halves: {variant.dtype} cannot have {variant.halves.bytes} bytes of float16")
    return faults


def _check_plain(names: Collection[str]) -> list[str]:
    many = [f"must be at most {_MAX_FILES} files, not {len(names)}"] if len(names) > _MAX_FILES else []
    return many + [f"{name!r} is not a plain file name" for name in names if not _PLAIN_FILE.fullmatch(name)]
