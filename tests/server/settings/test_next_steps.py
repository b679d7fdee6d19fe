import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from server.bundle.bundle import Bundle
from server.bundle.languages import LanguagePair
from server.settings.next_steps import next_steps
from server.settings.settings import Settings


def steps(bundle: Bundle, **settings: Any) -> str:
    return next_steps(Settings(**settings), bundle.manifest, 50061, 9465)


def test_there_are_a_command_the_metrics_and_the_way_out(tiny_bundle: Bundle) -> None:
    text = tiny_bundle.manifest.golden.source_text

    assert steps(tiny_bundle).splitlines() == [
        "",
        f"  try:      babelserve-translate --address 127.0.0.1:50061 --source en --target de '{text}'",
        "  metrics:  http://127.0.0.1:9465/metrics",
        "  stop:     Ctrl-C",
    ]


@pytest.mark.parametrize(
    ("host", "expected"), [("0.0.0.0", "localhost"), ("::", "localhost"), ("::1", "[::1]"), ("a.example", "a.example")]
)
def test_the_address_is_one_that_can_be_called(tiny_bundle: Bundle, host: str, expected: str) -> None:
    said = steps(tiny_bundle, host=host)

    assert f"--address {expected}:50061 " in said.replace("'", "")
    assert f"http://{expected}:9465/metrics" in said


def test_what_callers_must_bring_is_in_the_command(tiny_bundle: Bundle) -> None:
    path = Path("x.pem")

    said = steps(tiny_bundle, tls_cert=path, tls_key=path, tls_client_ca=path, keys=path)

    flags = re.findall(r"(--\S+) [A-Z]", said)
    assert flags == ["--tls-ca", "--tls-cert", "--tls-key", "--api-key-file"]


def test_a_sentence_that_would_do_something_to_the_terminal_is_not_shown(tiny_bundle: Bundle) -> None:
    golden = dataclasses.replace(tiny_bundle.manifest.golden, source_text="a\x1b[2J")
    manifest = dataclasses.replace(
        tiny_bundle.manifest, golden=golden, language_pairs=(LanguagePair(source="en", target="de"),)
    )

    said = next_steps(Settings(), manifest, 1, 2)

    assert said.splitlines()[1].endswith(" --target de ...")
