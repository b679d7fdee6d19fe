"""A bundle: the directory that `export` writes and the server serves, opened and checked against its manifest.

Every fault of the manifest and of the files that it names is collected and reported at once. A bundle is data only:
JSON, SentencePiece and ONNX, no pickle.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from server.bundle.graphs import needed_files
from server.bundle.manifest import MANIFEST_FILE, SHORTLIST_FILE, TOKENIZER_FILE, FileFacts, Manifest, read_manifest
from server.errors import BundleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A directory whose manifest and files have been checked."""

    directory: Path
    manifest: Manifest

    @property
    def tokenizer_path(self) -> Path:
        """The SentencePiece model."""
        return self.directory / TOKENIZER_FILE

    @property
    def shortlist_path(self) -> Path:
        """The lexical shortlist of variants that have one."""
        return self.directory / SHORTLIST_FILE

    def graph_path(self, variant: str, file: str) -> Path:
        """Path of a graph, or of the weights, of a variant."""
        return self.directory / variant / file


def open_bundle(directory: Path, variant: str | None = None) -> Bundle:
    """Opens a bundle and checks it against its manifest.

    Args:
        directory: what `babelserve-export` wrote.
        variant: check the files of this variant only; None checks all.

    Raises:
        BundleError: every fault found, such as a file with another hash.
    """
    manifest = read_manifest(directory)
    if variant is not None and variant not in manifest.variants:
        raise BundleError([f"{directory}: has no variant {variant}; it has {', '.join(manifest.variants)}"])
    faults = _check_file(directory, TOKENIZER_FILE, manifest.tokenizer)
    for file, facts in manifest.extra_files.items():
        faults += _check_file(directory, file, facts)
    for name in manifest.variants if variant is None else (variant,):
        files = manifest.variants[name].files
        missing = needed_files(name, manifest.variants[name].has_shortlist) - files.keys()
        faults += [f"{directory / MANIFEST_FILE}: variants.{name}.files lacks {file}" for file in sorted(missing)]
        for file, facts in files.items():
            faults += _check_file(directory, f"{name}/{file}", facts)
    if faults:
        raise BundleError(faults)
    return Bundle(directory=directory, manifest=manifest)


def describe_file(path: Path) -> FileFacts:
    """Returns the facts that a manifest holds of a file."""
    with path.open("rb") as file:
        return FileFacts(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=path.stat().st_size)


def _check_file(directory: Path, name: str, expected: FileFacts) -> list[str]:
    path = directory / name
    try:
        if not path.resolve().is_relative_to(directory.resolve()):
            return [f"{path}: leads out of the bundle"]
        found = describe_file(path)
    except OSError as error:
        return [f"{path}: cannot be read: {error.strerror}"]
    if found.bytes != expected.bytes:
        return [f"{path}: has {found.bytes} bytes, the manifest says {expected.bytes}"]
    if found.sha256 != expected.sha256:
        return [f"{path}: sha256 is {found.sha256}, the manifest says {expected.sha256}"]
    return []
