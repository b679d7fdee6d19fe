"""Versions of a model exchanged under load, to and fro: `python -m tests.acceptance.model_swaps --swaps 20`.

The new version searches with another length penalty, so that the score of every sentence says which one translated it.
"""

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from babelserve.v1 import translation_pb2 as pb
from server.bundle.manifest import seal_manifest
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import BUILTIN_BUNDLE, ServerProcess, running_server

_NUM_CALLERS = 4
_TIMEOUT = 50.0
_TOLERANCE = 1e-4  # of scores: sums in other orders


@dataclass(slots=True)
class Swapped:
    """What callers saw.

    Attributes:
        faults: calls that failed, and answers that no version alone gives.
        versions: how many answers were of each.
        rss_mib: of the server, before the first swap and after each second one.
    """

    faults: list[str] = field(default_factory=list)
    versions: Counter[str] = field(default_factory=Counter)
    rss_mib: list[float] = field(default_factory=list)

    @property
    def num_answers(self) -> int:
        """Of all versions."""
        return self.versions.total()


def put(bundle: Path, directory: Path, change: Callable[[Path], None] = lambda _: None) -> None:
    """Puts a copy of a bundle into place, changed before, all at once."""
    staged = directory.with_name(f".{directory.name}")
    shutil.copytree(bundle, staged)
    change(staged)
    staged.rename(directory)


def change_search(bundle: Path) -> None:
    """Gives a bundle another length penalty."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    manifest["search"] = manifest.get("search", {}) | {"length_penalty": 0.5}
    (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    seal_manifest(bundle)


def put_pair(bundle: Path, directory: Path, source: str, target: str) -> None:
    """Puts a model into place that says it translates between other languages."""

    def change(staged: Path) -> None:
        manifest = json.loads((staged / "manifest.json").read_text(encoding="utf-8"))
        manifest["language_pairs"] = [{"source": source, "target": target}]
        manifest["golden"] |= {"source_language": source, "target_language": target}
        (staged / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        seal_manifest(staged)

    put(bundle, directory, change)


def swap_under_load(
    server: ServerProcess, folder: Path, bundle: Path, sources: Sequence[str], num_swaps: int
) -> Swapped:
    """Puts version 2 beside version 1 and takes it away, in turn, while callers translate.

    Args:
        server: that serves `folder`, in which there is version 1.
        folder: of the model.
        bundle: that the versions are copies of.
        sources: sentences, of which each request has all.
        num_swaps: in all, of both directions; even.
    """
    result, stop = Swapped(), threading.Event()
    expected = {"1": _scores(_translate(server, folder.name, sources, 1.0))}
    expected["2"] = _scores(_translate(server, folder.name, sources, 0.5))
    callers = [
        threading.Thread(target=_call, args=(server, folder.name, sources, expected, stop, result))
        for _ in range(_NUM_CALLERS)
    ]
    for caller in callers:
        caller.start()
    try:
        result.rss_mib.append(rss_mib(server))
        for number in range(num_swaps):
            if number % 2 == 0:
                put(bundle, folder / "2", change_search)
                _wait_for(server, folder.name, "2")
            else:
                (folder / "2").rename(folder / ".2")
                shutil.rmtree(folder / ".2")
                _wait_for(server, folder.name, "1")
                result.rss_mib.append(rss_mib(server))
    finally:
        stop.set()
        for caller in callers:
            caller.join()
    return result


def _call(
    server: ServerProcess,
    model: str,
    sources: Sequence[str],
    expected: dict[str, list[float]],
    stop: threading.Event,
    result: Swapped,
) -> None:
    while not stop.is_set():
        try:
            response = _translate(server, model, sources)
        except grpc.RpcError as error:
            result.faults.append(str(error))
            continue
        result.versions[response.model_version] += 1
        pairs = zip(_scores(response), expected[response.model_version], strict=True)
        if any(abs(found - wanted) > _TOLERANCE for found, wanted in pairs):
            result.faults.append(f"{_scores(response)} are not of version {response.model_version}")


def _translate(
    server: ServerProcess, model: str, sources: Sequence[str], length_penalty: float | None = None
) -> pb.TranslateResponse:
    decoding = pb.DecodingOptions(length_penalty=length_penalty)
    request = pb.TranslateRequest(contents=sources, target_language_code="de", model=model, decoding=decoding)
    with open_stub(server.address) as stub:
        response: pb.TranslateResponse = stub.Translate(request, timeout=_TIMEOUT)
    return response


def _scores(response: pb.TranslateResponse) -> list[float]:
    return [translation.score for translation in response.translations]


def _wait_for(server: ServerProcess, model: str, version: str) -> None:
    deadline = time.monotonic() + _TIMEOUT
    with open_stub(server.address) as stub:
        while time.monotonic() < deadline:
            listed = stub.ListModels(pb.ListModelsRequest(), timeout=_TIMEOUT).models
            if version in [each.version for each in listed if each.name == model]:
                return
            time.sleep(0.05)
    raise TimeoutError(f"version {version} was not served within {_TIMEOUT:g} s: {server.stderr()[-2000:]}")


def rss_mib(server: ServerProcess) -> float:
    """Memory that a server has, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=BUILTIN_BUNDLE)
    parser.add_argument("--variant", default="cpu-int8")
    parser.add_argument("--swaps", type=int, default=20)
    arguments = parser.parse_args()
    sources = [f"A group of {number} people is standing in front of a house." for number in range(8)]
    with tempfile.TemporaryDirectory() as directory:
        models = Path(directory, "models")
        for name in ("first", "second"):
            (models / name).mkdir(parents=True)
            put(arguments.bundle, models / name / "1")
        with running_server(["--models", str(models), "--variant", arguments.variant]) as server:
            result = swap_under_load(server, models / "first", arguments.bundle, sources, arguments.swaps)
            time.sleep(3.0)
            last = rss_mib(server)
    print(
        f"{arguments.swaps} swaps, {result.num_answers} answers {dict(result.versions)}, faults: {len(result.faults)}"
    )
    print("resident MiB:", " ".join(f"{each:.0f}" for each in result.rss_mib), f"and idle {last:.0f}")
    for fault in result.faults[:10]:
        print(fault)
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
