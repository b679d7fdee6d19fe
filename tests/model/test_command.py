import sys

import pytest

from model.command import run


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
