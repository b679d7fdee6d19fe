import argparse
import sys

import pytest

from model.command import parse


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
