"""A bundle: the directory that `export` writes and the server serves, opened and checked against its manifest.

Every fault of the manifest and of the files that it names is collected and reported at once. A bundle is data only:
JSON, SentencePiece and ONNX, no pickle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from server.bundle.files import read_file
from server.bundle.graphs import HALVES_FILE, WEIGHTS_FILE, needed_files
from server.bundle.manifest import MANIFEST_FILE, Manifest
from server.bundle.manifest_file import read_manifest
from server.bundle.variant_files import join_weights
from server.errors import BundleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A directory whose manifest has been checked.

    Attributes:
        directory: what `babelserve-export` wrote.
        manifest: its manifest.
        contents: by path in the directory, what `read` returns, verified and held already. It takes memory: who has
            loaded what it needs lets go of the bundle.
    """

    directory: Path
    manifest: Manifest
    contents: Mapping[str, bytes] = field(default_factory=dict)

    def read(self, name: str) -> bytes:
        """Returns what a file holds: what has been verified, or else what is read and verified here.

        Of a variant's weights it returns all, those too that the variant shares with others.

        Args:
            name: path in the directory, such as "cpu-fp32/encoder.onnx".

        Raises:
            BundleError: the manifest does not describe it, or it is another.
        """
        if name in self.contents:
            return self.contents[name]
        facts = self.manifest.files(self.manifest.variants).get(name)
        if facts is None:
            raise BundleError([f"{self.directory / name}: is not in the manifest"])
        content = read_file(self.directory, name, facts)
        variant = self.manifest.variants.get(name.removesuffix(f"/{WEIGHTS_FILE}"))
        if variant is None or variant.halves is None:
            return content
        return join_weights(content, read_file(self.directory, HALVES_FILE, variant.halves), variant.dtype)


def open_bundle(directory: Path, variant: str | None = None) -> Bundle:
    """Opens a bundle and checks it against its manifest.

    Args:
        directory: what `babelserve-export` wrote.
        variant: check the files that this variant needs, and hold them; None checks all, and holds none.

    Raises:
        BundleError: every fault found, such as a file with another hash.
    """
    manifest = read_manifest(directory)
    if variant is not None and variant not in manifest.variants:
        raise BundleError([f"{directory}: has no variant {variant}; it has {', '.join(manifest.variants)}"])
    variants = tuple(manifest.variants) if variant is None else (variant,)
    faults = []
    for name in variants:
        variant_files = manifest.variants[name]
        needed = needed_files(name, variant_files.has_shortlist, manifest.states, manifest.family)
        missing = needed - variant_files.files.keys()
        faults += [f"{directory / MANIFEST_FILE}: variants.{name}.files lacks {file}" for file in sorted(missing)]
    contents = {}
    for name, facts in manifest.files(variants).items():
        try:
            content = read_file(directory, name, facts)
        except BundleError as error:
            faults += error.faults
        else:
            if variant is not None:
                contents[name] = content
    if faults:
        raise BundleError(faults)
    if variant is not None and manifest.variants[variant].halves is not None:
        weights, halves = f"{variant}/{WEIGHTS_FILE}", contents.pop(HALVES_FILE)
        contents[weights] = join_weights(contents[weights], halves, manifest.variants[variant].dtype)
    return Bundle(directory=directory, manifest=manifest, contents=contents)
