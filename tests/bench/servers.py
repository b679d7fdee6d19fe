"""The two servers of the served load, each in a process of its own, watched from outside through /proc."""

import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from server.bundle.bundle import Bundle
from server.bundle.manifest import TOKENIZER_FILE
from tests.acceptance.server_process import free_ports, running_server
from tests.bench.systems import Settings, peak_resident_bytes
from tests.bench.text import ROOT
from tests.samples import total


@dataclass(slots=True)
class Server:
    """A running server; `source_tokens` and `padded_source_tokens` are known after it has stopped."""

    name: str
    address: str
    pid: int
    counts: list[float] = field(default_factory=list)  # source tokens, and with padding; known at the end
    peak_bytes: int = 0
    seconds_to_serving: float = math.nan

    def cpu_seconds(self) -> float:
        """Returns the processor time that it has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime


@contextmanager
def our_server(settings: Settings) -> Iterator[Server]:
    """Our live server with its defaults, but for the lanes, and a queue that holds whatever the load sends."""
    flags = ["--bundle", settings.path, "--variant", settings.precision, "--lanes", str(settings.workers)]
    flags += ["--max-rows", str(settings.batch)] if settings.batch else []
    with running_server([*flags, "--log-level", "warning"], cwd=Path(settings.checkout)) as process:
        server = Server("ours", process.address, process.process.pid, seconds_to_serving=process.seconds_to_serving)
        try:
            yield server
        finally:
            server.counts = _counts(process.metrics_url)
            server.peak_bytes = peak_resident_bytes(server.pid)


@contextmanager
def ctranslate2_server(settings: Settings, bundle: Bundle) -> Iterator[Server]:
    """The server of `tests.bench.ctranslate2_server`, with the tokenizer of our bundle."""
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "tests.bench.ctranslate2_server", json.dumps(dataclasses.asdict(settings))]
    environment = {**os.environ, "OMP_NUM_THREADS": str(settings.threads), **settings.environment}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*command, str(bundle.directory / TOKENIZER_FILE), str(port)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "serving\n":
                errors.seek(0)
                raise RuntimeError(f"the CTranslate2 server did not start: {errors.read()}")
            server = Server("ctranslate2", f"127.0.0.1:{port}", process.pid)
            try:
                yield server
            finally:
                server.peak_bytes = peak_resident_bytes(server.pid)
                process.terminate()
                server.counts = json.loads(process.stdout.readline() or "[]")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _counts(metrics_url: str) -> list[float]:
    with urllib.request.urlopen(metrics_url, timeout=10) as page:
        text = page.read().decode("utf-8")
    families = list(text_string_to_metric_families(text))
    return [total(families, f"babelserve_{name}_total") for name in ("source_tokens", "padded_source_tokens")]
