"""A tiny trained model and the bundle exported from it: real parts at a size that needs seconds."""

import os
import sys
from pathlib import Path

import pytest
import sentencepiece
import torch

from export.bundle import export_bundle
from export.subject import DevSet, subject_of
from model.checkpoint import Checkpoint, load_checkpoint
from model.transformer import Transformer
from server.bundle.bundle import Bundle
from tests.captions import read_captions

torch.set_num_threads(1)  # tiny tensors: a second thread only waits

DATA = Path(__file__).parent / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tells of a failure at once: a run that is ended from outside writes no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        reason = report.longreprtext.splitlines()[-8:]
        sys.stderr.write("\n".join(["", f"{report.nodeid} failed ({report.when}):", *reason, ""]))


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
    out = tmp_path_factory.mktemp("bundles") / "tiny"
    return export_bundle(  # max_bleu_loss: learnt by heart, so it is very sharp
        subject_of(tiny_checkpoint), out, dev_set, version="0", max_bleu_loss=3.0
    )


@pytest.fixture(scope="session")
def one_pass_checkpoint() -> Checkpoint:
    """A model of 60,000 weights that writes all words of a translation at once (tests/data/tiny_one_pass.toml)."""
    return load_checkpoint(DATA / "tiny_one_pass.pt")


@pytest.fixture(scope="session")
def one_pass_bundle(
    one_pass_checkpoint: Checkpoint, dev_set: DevSet, tmp_path_factory: pytest.TempPathFactory
) -> Bundle:
    """All variants of `one_pass_checkpoint` that there are, exported and proven."""
    out = tmp_path_factory.mktemp("bundles") / "one-pass"
    variants = ("cpu-fp32", "cpu-int8")
    return export_bundle(
        subject_of(one_pass_checkpoint), out, dev_set, version="0", variants=variants, max_bleu_loss=3.0
    )


@pytest.fixture(scope="session")
def sources(tiny_checkpoint: Checkpoint, tiny_bundle: Bundle, dev_set: DevSet) -> list[list[int]]:
    """The dev sentences as token ids with eos, those that the tiny bundle takes whole."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tiny_checkpoint.tokenizer)
    encoded = [[*ids, tiny_checkpoint.config.eos_id] for ids in tokenizer.encode(dev_set.sources)]
    return [ids for ids in encoded if len(ids) <= tiny_bundle.manifest.limits.max_source_tokens]
