"""What a directory or file is, and how it is read."""

import dataclasses
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from export.drafts import scratch
from export.imports.families import (
    argos,
    ctranslate2,
    fairseq,
    fsmt,
    hugging_face_marian,
    marian,
    multilingual,
    opennmt_py,
)
from export.imports.families.fairseq_files import is_here as is_fairseq_here
from export.imports.foreign import ForeignModel
from export.imports.formats.archives import unpack
from export.imports.formats.tensors import FormatError
from export.imports.languages import GivenLanguages
from export.imports.report import Report
from export.imports.settings import read_settings

_HUGGING_FACE = {
    hugging_face_marian.MODEL_TYPE: hugging_face_marian.read,
    fsmt.MODEL_TYPE: fsmt.read,
    **dict.fromkeys(multilingual.MODEL_TYPES, multilingual.read),
}
_CHECKPOINT = re.compile(r".*\.(npz|pt)|model.*\.bin")  # of which a directory may have several
# What people have and cannot be served, with what can.
_REFUSED = {
    "nllb-moe": "a mixture of experts is not supported; nllb-200-3.3B or a distilled one is",
    "t5": "relative positions are not supported",
    "mt5": "relative positions are not supported",
    "umt5": "relative positions are not supported",
    "bart": "it is no model for translation",
    "seamless_m4t": "speech is not supported; facebook/nllb-200-distilled-600M is for text",
    "seamless_m4t_v2": "speech is not supported; facebook/nllb-200-distilled-600M is for text",
}


@contextmanager
def opened(source: Path) -> Iterator[Path]:
    """Yields the directory of a model: `source`, the one that it is in, or what it unpacks to for as long as needed.

    Of a checkpoint that is named, the directory holds links to all that is beside it but other checkpoints.

    Raises:
        FormatError: it is neither a directory nor a file that can be read.
    """
    if source.is_dir():
        yield source
    elif source.suffix in (".argosmodel", ".zip"):
        with scratch(Path(tempfile.gettempdir()), "babelserve-import.") as parent:
            directory = parent / source.stem  # by which a model is called that says nothing else
            directory.mkdir()
            unpack(source, directory)
            yield directory
    elif _CHECKPOINT.fullmatch(source.name) and source.is_file():
        with scratch(Path(tempfile.gettempdir()), "babelserve-import.") as parent:
            directory = parent / source.parent.resolve().name
            directory.mkdir(exist_ok=True)
            for path in source.parent.iterdir():
                if path.name == source.name or not _CHECKPOINT.fullmatch(path.name):
                    (directory / path.name).symlink_to(path.absolute())
            yield directory
    elif source.exists():
        yield source.parent
    else:
        raise FormatError("does not exist")


def read_model(directory: Path, given: GivenLanguages, report: Report, name: str = "") -> ForeignModel | None:
    """Reads whatever model is in a directory, but for its weights; None where faults leave nothing to go on with.

    Args:
        directory: what `opened` yields.
        given: languages that the user has named.
        report: gets the faults.
        name: for the model instead of its directory's.
    """
    model = _read(directory, given, report)
    return dataclasses.replace(model, name=name) if model is not None and name else model


def _read(directory: Path, given: GivenLanguages, report: Report) -> ForeignModel | None:
    package = argos.find(directory)
    if package is not None:
        return argos.read(package, given, report)
    if ctranslate2.is_here(directory):
        return ctranslate2.read(directory, given, report)
    if (directory / "config.json").exists():
        return _read_hugging_face(directory, given, report)
    if marian.is_here(directory):
        return marian.read(directory, given, report)
    if is_fairseq_here(directory):
        return fairseq.read(directory, given, report)
    if opennmt_py.is_here(directory):
        return opennmt_py.read(directory, given, report)
    names = sorted(path.name for path in directory.iterdir())
    found = f"{', '.join(names[:8])}{' ...' if len(names) > 8 else ''}" if names else "an empty directory"
    report.fault(
        directory.resolve().name,
        found=found,
        expected="config.json with weights, model.bin of CTranslate2, a Marian model, or .pt of fairseq or OpenNMT-py",
        remedy="give the directory of the model itself",
    )
    return None


def _read_hugging_face(directory: Path, given: GivenLanguages, report: Report) -> ForeignModel | None:
    config = read_settings(directory, "config.json", report)
    if report.faults:
        return None
    kind = config.text("model_type")
    reader = _HUGGING_FACE.get(kind)
    if reader is not None:
        config.expect("quantization_config", remedy="import the model that was quantised, not its quantisation")
        return reader(directory, config, given, report)
    if kind in _REFUSED:
        report.fault("config.json", "model_type", found=kind, remedy=_REFUSED[kind])
    else:
        report.fault(
            "config.json", "model_type", found=kind or "missing", expected=f"one of {', '.join(_HUGGING_FACE)}"
        )
    return None
