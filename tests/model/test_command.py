import argparse
import sys

import pytest

from model.command import parse, run


def test_a_missing_package_is_one_line_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "model.transformer", raising=False)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/babelserve-train"])

    with pytest.raises(SystemExit) as ended:
        run("model.transformer", "train")

    assert ended.value.code == "babelserve-train: needs torch: install 'babelserve[train]'"


def test_a_missing_module_of_our_own_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError):
        run("model.no_such_module", "train")


def test_two_dashes_are_no_value_of_a_flag(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--names", nargs="+", default=[])
    monkeypatch.setattr(sys, "argv", ["babelserve-train", "--max-steps=--"])
    with pytest.raises(SystemExit) as caught:
        parse(parser)

    assert caught.value.code == 2
    assert "max-steps: " in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["babelserve-train"])
    assert parse(parser) == argparse.Namespace(max_steps=None, names=[])
