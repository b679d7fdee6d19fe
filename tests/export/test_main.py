import argparse
import logging
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from export.__main__ import build_parser, main
from export.imports.__main__ import build_parser as build_import_parser
from export.restore import restore_checkpoint
from export.shortlist import NUM_COMMON
from server.bundle.bundle import open_bundle
from server.bundle.shortlist import Shortlist
from server.bundle.variants import VARIANTS
from server.models.checking import check_bundle
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.export.test_bundle import Interrupt

DATA = Path(__file__).parents[1] / "data"
CHECKPOINT = DATA / "tiny.pt"
DEV = [DATA / "multi30k_val_200.en.txt", DATA / "multi30k_val_200.de.txt"]


class Command:
    """Runs `babelserve-export` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        monkeypatch.setattr("export.bundle._ORACLE_WORK", 0)  # as for a large network; test_bundle.py proves with all

    def __call__(self, *arguments: object) -> str:
        self.monkeypatch.setattr(sys, "argv", ["babelserve-export", *map(str, arguments)])
        main()
        return self.capsys.readouterr().out

    def fails(self, *arguments: object) -> tuple[Any, str]:
        """Returns the exit code and stderr; nothing may stand on stdout."""
        self.monkeypatch.setattr(sys, "argv", ["babelserve-export", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = self.capsys.readouterr()
        assert captured.out == ""
        return caught.value.code, captured.err


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    handler = signal.getsignal(signal.SIGTERM)
    yield Command(monkeypatch, capsys)
    signal.signal(signal.SIGTERM, handler)


def test_the_command_writes_a_proven_bundle(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "bundle"

    options = ("--version", "2025.1", "--variants", "cpu-fp32", "--shortlist", *DEV, "--max-bleu-loss", 3.0)
    printed = command(CHECKPOINT, out, "--dev", *DEV, *options)

    lines = printed.splitlines()
    assert re.fullmatch(rf"{out}: proven \(cpu-fp32 0\.\d MB, halves\.bin 0\.\d MB\)", lines[0])
    number = r"\d+\.\d\d"
    for line, name in zip(lines[1:3], ("cpu-fp32", "cpu-fp32, shortlist"), strict=True):
        assert re.fullmatch(rf"  {name}: BLEU {number}, chrF {number} on 200 dev sentences", line)
    assert lines[3:] == [f"next: babelserve --bundle {out}"]
    bundle = open_bundle(out)
    manifest = bundle.manifest
    assert len(Shortlist.load(bundle.read("shortlist.npz"), manifest.dimensions.vocab_size).common) >= NUM_COMMON
    assert manifest.version == "2025.1"
    assert list(manifest.variants) == ["cpu-fp32"]
    assert manifest.parity["beam_4_ids"] == {"sentences": 16, "equal": 16, "near_ties": []}
    assert list(manifest.quality) == ["cpu-fp32", "cpu-fp32, shortlist"]


def test_a_variant_is_written_alone_if_that_is_asked_for(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "bundle"

    printed = command(CHECKPOINT, out, "--dev", *DEV, "--variants", "cpu-int8", "--max-bleu-loss", 10)

    assert re.match(rf"{out}: proven \(cpu-int8 0\.\d MB\)\n  cpu-fp32: BLEU ", printed)
    bundle = open_bundle(out)
    assert list(bundle.manifest.variants) == list(bundle.manifest.golden.outputs) == ["cpu-int8"]
    assert list(bundle.manifest.quality) == ["cpu-fp32", "cpu-int8"]
    assert not (out / "cpu-fp32").exists()
    checked = list(check_bundle(out, Settings(), Metrics(CollectorRegistry())))
    assert checked[-1].startswith("cpu-int8: passes the golden sentence")


def test_a_window_is_proven_and_comes_back(command: Command, tmp_path: Path) -> None:
    out, again = tmp_path / "bundle", tmp_path / "again"

    command(CHECKPOINT, out, "--dev", *DEV, "--variants", "cpu-fp32", "--decoder-window", 2)
    command(out, again, "--dev", *DEV, "--variants", "cpu-fp32", "--decoder-window", 0)

    windowed, whole = (open_bundle(directory).manifest for directory in (out, again))
    assert {(state.kind, state.shape[1]) for state in windowed.states} == {("window", 2)}
    assert {state.kind for state in whole.states} == {"growing"}
    assert windowed.golden.outputs != whole.golden.outputs
    assert restore_checkpoint(out).config.self_window == 2


@pytest.mark.parametrize("window", [-1, 10**6])
def test_a_window_that_cannot_be_ends_with_two(command: Command, tmp_path: Path, window: int) -> None:
    code, message = command.fails(CHECKPOINT, tmp_path / "bundle", "--dev", *DEV, "--decoder-window", window)

    assert code == 2
    assert re.search(rf"self_window must be in 0\.\.\d+ with attention, not {window}", message)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("parser", [build_parser(), build_import_parser()], ids=lambda parser: parser.prog)
def test_what_runs_on_cpus_is_written_unless_more_is_asked_for(parser: argparse.ArgumentParser) -> None:
    def variants(*more: str) -> object:
        dev = ["--dev", "a", "b"] if parser.prog == "babelserve-export" else []
        return parser.parse_args(["model", "bundle", *dev, *more]).variants

    assert variants() == ["cpu-fp32", "cpu-int8"]
    assert variants("--variants", *VARIANTS) == list(VARIANTS)


@pytest.mark.parametrize(
    ("checkpoint", "dev", "expected"),
    [
        ("missing.pt", DEV, "missing.pt"),
        (DEV[0], DEV, "is not a babelserve checkpoint"),
        (CHECKPOINT, ["missing.en", DEV[1]], "missing.en"),
        (CHECKPOINT, [DEV[0], DATA / "tiny.toml"], "has 200 lines"),
    ],
)
def test_unreadable_files_end_with_two(
    command: Command, tmp_path: Path, checkpoint: object, dev: list[object], expected: str
) -> None:
    code, message = command.fails(checkpoint, tmp_path / "bundle", "--dev", *dev)

    assert code == 2
    assert message.startswith("babelserve-export: ")
    assert expected in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["missing.tsv"], "missing.tsv"),
        ([DEV[0], DATA / "tiny.toml"], "has 200 lines"),
        ([DEV[0]], f"{DEV[0]}: none of its 200 lines has text in UTF-8 on both sides"),  # without tabs
    ],
)
def test_unreadable_training_text_ends_with_two(
    command: Command, tmp_path: Path, files: list[object], expected: str
) -> None:
    code, message = command.fails(CHECKPOINT, tmp_path / "bundle", "--dev", *DEV, "--shortlist", *files)

    assert code == 2
    assert expected in message
    assert not list(tmp_path.iterdir())


def test_an_existing_directory_ends_with_two(command: Command, tmp_path: Path) -> None:
    code, message = command.fails(CHECKPOINT, tmp_path, "--dev", *DEV)

    assert (code, message) == (2, f"babelserve-export: {tmp_path} exists already\n")


def test_a_small_dev_set_ends_with_two(command: Command, tmp_path: Path) -> None:
    dev = [tmp_path / "dev.en", tmp_path / "dev.de"]
    for file in dev:
        file.write_text("Hallo\n", encoding="utf-8")

    code, message = command.fails(CHECKPOINT, tmp_path / "bundle", "--dev", *dev)

    assert code == 2
    assert "at least 200 are needed" in message


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([CHECKPOINT, "out"], "the following arguments are required: --dev"),
        ([CHECKPOINT, "out", "--dev", DEV[0]], "expected 2 arguments"),
        ([CHECKPOINT, "out", "--dev", *DEV, "--variants", "cpu-int4"], "invalid choice: 'cpu-int4'"),
        ([CHECKPOINT, "out", "--dev", *DEV, "--max-bleu-loss", "x"], "'x' is no number from 0 to 100"),
        ([CHECKPOINT, "out", "--dev", *DEV, "--max-bleu-loss", "nan"], "'nan' is no number from 0 to 100"),
        ([CHECKPOINT, "out", "--dev", *DEV, "--version", "a\x1bb"], "is not 1 to 128 printable characters"),
        ([CHECKPOINT, "out", "--dev", *DEV, "--shortlist"], "expected at least one argument"),
        ([CHECKPOINT, "out", "--dev", *DEV, "--max-bleu-loss=--"], "max-bleu-loss: "),
        ([CHECKPOINT, "out", "--dev", *DEV, "--variants=--"], "variants: "),
        ([CHECKPOINT, "out", "--dev", *DEV, "--shortlist", *DEV, *DEV], "give it once for each corpus"),
    ],
)
def test_wrong_arguments_end_with_two(command: Command, arguments: list[object], expected: str) -> None:
    code, message = command.fails(*arguments)

    assert code == 2
    assert expected in message


def test_a_failing_check_ends_with_one_and_says_that_nothing_was_written(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tolerance in ("LOGITS_ATOL", "LOGITS_RTOL"):
        monkeypatch.setattr(f"export.verify.{tolerance}", 0.0)  # no float32 is that exact
    out = tmp_path / "bundle"

    code, message = command.fails(CHECKPOINT, out, "--dev", *DEV, "--variants", "cpu-fp32")

    assert code == 1
    assert message.startswith(f"babelserve-export: {out} was not written: step logits differ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_one_and_leaves_nothing(
    command: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture, number: signal.Signals
) -> None:
    caplog.set_level(logging.INFO, "export.bundle")
    handler, logger = Interrupt("comparing with the model", number), logging.getLogger("export.bundle")
    logger.addHandler(handler)
    try:
        code, message = command.fails(CHECKPOINT, tmp_path / "bundle", "--dev", *DEV, "--variants", "cpu-fp32")
    finally:
        logger.removeHandler(handler)

    assert code == 1
    assert "Traceback" not in message
    assert not list(tmp_path.iterdir())
