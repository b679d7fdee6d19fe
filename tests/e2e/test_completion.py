"""Every console script completes itself in a shell: bash, here, is asked as if Tab were pressed."""

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


def test_no_console_script_is_left_out() -> None:
    projects = [tomllib.loads((ROOT / name).read_text()) for name in ("pyproject.toml", "babelserve/pyproject.toml")]

    assert {name for each in projects for name in each["project"]["scripts"]} == MODULES.keys()


@pytest.mark.parametrize("script", MODULES)
def test_a_script_completes_its_flags(script: str, tmp_path: Path) -> None:
    module, begun, flag = MODULES[script]
    printed = subprocess.run(
        [sys.executable, "-m", module, "--print-completion", "bash"], cwd=ROOT, capture_output=True, check=True
    )
    (tmp_path / "completion").write_bytes(printed.stdout)
    ask = f"""
        source {tmp_path}/completion
        COMP_WORDS=({script} {begun}) COMP_CWORD=1
        $(complete -p {script} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        echo "${{COMPREPLY[@]}}"
    """

    completed = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)

    assert flag in completed.stdout.split()
    assert printed.stderr == b""
