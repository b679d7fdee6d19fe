"""A tiny trained model and the bundle exported from it: real parts at a size that needs seconds."""

import fcntl
import gc
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import sentencepiece
import torch

from export.bundle import export_bundle
from export.subject import DevSet, subject_of
from model.checkpoint import Checkpoint, load_checkpoint
from model.transformer import Transformer
from server.bundle.bundle import Bundle, open_bundle
from tests.captions import read_captions

torch.set_num_threads(1)  # tiny tensors: a second thread only waits

DATA = Path(__file__).parent / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Has the collector of cycles pass over what is imported and collected, which is there until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tells of a failure at once: a run that is ended from outside writes no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        reason = report.longreprtext.splitlines()[-8:]
        sys.stderr.write("\n".join(["", f"{report.nodeid} failed ({report.when}):", *reason, ""]))


def _made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Bundle]) -> Bundle:
    """Has one process make a bundle for all processes of a run; the others wait for it. No test changes it."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each of these processes has a folder in that of the run
        folder = folder.parent
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        out = folder / name / "bundle"  # alone in a folder: a test looks whether an export leaves anything beside it
        out.parent.mkdir(exist_ok=True)
        return open_bundle(out) if out.exists() else make(out)


@pytest.fixture(scope="session")
def dev_set() -> DevSet:
    """200 sentences with their German translations."""
    return read_captions()


@pytest.fixture(scope="session")
def tiny_checkpoint() -> Checkpoint:
    """A model of 60,000 weights that knows the sentences of `dev_set` by heart (tests/data/tiny.toml)."""
    return load_checkpoint(DATA / "tiny.pt")


@pytest.fixture(scope="session")
def tiny_model(tiny_checkpoint: Checkpoint) -> Transformer:
    """The model of `tiny_checkpoint`, in evaluation mode."""
    return tiny_checkpoint.build_model()


@pytest.fixture(scope="session")
def tiny_bundle(tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """All variants of `tiny_checkpoint`, exported and proven."""

    def make(out: Path) -> Bundle:  # max_bleu_loss: learnt by heart, so it is very sharp
        return export_bundle(subject_of(tiny_checkpoint), out, dev_set, version="0", max_bleu_loss=3.0)

    return _made_once(tmp_path_factory, "tiny-bundle", make)


@pytest.fixture(scope="session")
def one_pass_checkpoint() -> Checkpoint:
    """A model of 60,000 weights that writes all words of a translation at once (tests/data/tiny_one_pass.toml)."""
    return load_checkpoint(DATA / "tiny_one_pass.pt")


@pytest.fixture(scope="session")
def one_pass_bundle(
    one_pass_checkpoint: Checkpoint, dev_set: DevSet, tmp_path_factory: pytest.TempPathFactory
) -> Bundle:
    """All variants of `one_pass_checkpoint` that there are, exported and proven."""

    def make(out: Path) -> Bundle:
        variants = ("cpu-fp32", "cpu-int8")
        subject = subject_of(one_pass_checkpoint)
        return export_bundle(subject, out, dev_set, version="0", variants=variants, max_bleu_loss=3.0)

    return _made_once(tmp_path_factory, "one-pass-bundle", make)


@pytest.fixture(scope="session")
def sources(tiny_checkpoint: Checkpoint, tiny_bundle: Bundle, dev_set: DevSet) -> list[list[int]]:
    """The dev sentences as token ids with eos, those that the tiny bundle takes whole."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tiny_checkpoint.tokenizer)
    encoded = [[*ids, tiny_checkpoint.config.eos_id] for ids in tokenizer.encode(dev_set.sources)]
    return [ids for ids in encoded if len(ids) <= tiny_bundle.manifest.limits.max_source_tokens]
