"""Every console script completes itself in a shell: bash, here, is asked as if Tab were pressed."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {
    "babelserve": ("server", "--max-ro", "--max-rows"),
    "babelserve-translate": ("babelserve", "--list-m", "--list-models"),
    "babelserve-models": ("babelserve.admin", "--api", "--api-key-file"),
    "babelserve-gateway": ("server.gateway", "--http-p", "--http-port"),
    "babelserve-bulk": ("server.bulk", "--shard", "--shard-kib"),
    "babelserve-train": ("model.train", "--da", "--data"),
    "babelserve-evaluate": ("export.evaluate", "--ref", "--reference"),
    "babelserve-export": ("export", "--shortl", "--shortlist"),
    "babelserve-import": ("export.imports", "--dry", "--dry-run"),
    "babelserve-probe": ("export.probe_bundle", "--te", "--text"),
}
# One process for all, since some of them import PyTorch.
PRINTER = """
import contextlib, io, json, runpy, sys
modules, found = sys.argv[1:], []
for module in modules:
    sys.argv = [module, "--print-completion", "bash"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    found.append([out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def test_no_console_script_is_left_out() -> None:
    projects = [tomllib.loads((ROOT / name).read_text()) for name in ("pyproject.toml", "babelserve/pyproject.toml")]

    assert {name for each in projects for name in each["project"]["scripts"]} == MODULES.keys()


@pytest.fixture(scope="module")
def printed() -> dict[str, tuple[str, str]]:
    """Of each script, what it prints to complete itself, and what it says on stderr."""
    modules = [module for module, _, _ in MODULES.values()]
    done = subprocess.run(
        [sys.executable, "-c", PRINTER, *modules], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return dict(zip(MODULES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("script", MODULES)
def test_a_script_completes_its_flags(script: str, printed: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    _, begun, flag = MODULES[script]
    completion, said = printed[script]
    (tmp_path / "completion").write_text(completion, encoding="utf-8")
    ask = f"""
        source {tmp_path}/completion
        COMP_WORDS=({script} {begun}) COMP_CWORD=1
        $(complete -p {script} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        echo "${{COMPREPLY[@]}}"
    """

    completed = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)

    assert flag in completed.stdout.split()
    assert said == ""
