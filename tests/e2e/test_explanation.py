"""`babelserve-translate --explain` against a real server."""

import subprocess
import sys
from pathlib import Path

from tests.acceptance.server_process import running_server
from tests.babelserve.explanation.sentences import Reader

TEXT = "The small cat drinks milk. We met <script>alert(1)</script> at the station."


def test_a_page_shows_links_confidence_terms_and_the_tree(tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    with running_server(["--models", "builtin"]) as server:
        command = [sys.executable, "-m", "babelserve", "--address", server.address, "--target", "de"]
        flags = ["--explain", str(page), "--term", "cat=Kater"]
        done = subprocess.run([*command, *flags, TEXT], capture_output=True, text=True, check=False, timeout=50)

    assert (done.returncode, done.stderr) == (0, "")
    reader = Reader(page.read_text())
    said = [each["data-say"] or "" for each in reader.words()]
    assert any(each.startswith("drinks: trinkt (") for each in said)
    assert any(each.startswith("Kater: ") and each.endswith("a term") for each in said)
    assert len(reader.all_of("script")) == 1
    assert len(reader.all_of("svg")) == 2
    assert len(reader.all_of("meter")) == 2
    words = {text for tag, text in reader.texts if tag in ("span", "p")}
    assert {"trinkt", "Kater", "script"} <= words
    assert "The server does not say" not in page.read_text()
