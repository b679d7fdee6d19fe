"""`make demo`: starts the server with the built-in model, translates, looks at its metrics, and stops it.

The text to translate comes from the environment variable DEMO_TEXT; without it, a few samples are translated.
Everything goes the way a user goes: the command `babelserve` in a process of its own, the client's gRPC calls, a scrape
over HTTP.
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from babelserve import Client, TranslationError, Unavailable

SAMPLES = (
    "Two dogs are running through the snow.",
    "Where is the railway station?",
    "I would like a cup of coffee and the bill, please.",
    "The government said on Monday that prices rose by 2.5 percent last year.",
    "Hello {name}, you have %d new messages.",
    "PLEASE CLOSE THE WINDOW.",
    "You can find more information at https://example.org/help?id=42.",
    "Thank you for your letter. We are happy to help you.\n\nPlease call us if you have any questions.",
)
EXPECT = "A small model, trained on free text alone: of everyday sentences about a fifth mislead, and more of the rest."
METRICS = (
    r'babelserve_requests_total{code="OK",method="Translate"}',
    r'babelserve_sentences_total{.*outcome="ok".*}',
    r"babelserve_source_tokens_total{.*}",
    r"babelserve_generated_tokens_total{.*}",
    r"babelserve_step_duration_seconds_sum{.*}",
)
START_SECONDS = 60.0
STOP_SECONDS = 60.0


class DemoFailed(Exception):
    """What went wrong, in words for the terminal."""


def main() -> int:
    """Runs the demo; 0 when all of it worked."""
    texts = [os.environ["DEMO_TEXT"]] if os.environ.get("DEMO_TEXT") else list(SAMPLES)
    port, health_port, admin_port, metrics_port = free_ports(4)
    flags = {"port": port, "health-port": health_port, "admin-port": admin_port, "metrics-port": metrics_port}
    try:
        with (
            running_server({**flags, "drain-delay": 0}) as server,
            Client(f"127.0.0.1:{port}", deadline_seconds=START_SECONDS) as client,
        ):
            wait_until_serving(client, server)
            translate(client, texts)
            print(f"{EXPECT}\n")
            show_metrics(f"http://127.0.0.1:{metrics_port}/metrics")
    except (DemoFailed, TranslationError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print("The server stopped cleanly.")
    return 0


def free_ports(count: int) -> list[int]:
    """Finds ports of the loopback interface that nobody has."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def running_server(flags: dict[str, int]) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the server beside this Python; at the end stops it by SIGTERM.

    Raises:
        DemoFailed: It did not end with exit code 0; its log is printed.
    """
    command = [str(Path(sys.executable).with_name("babelserve"))]
    for name, value in flags.items():
        command += [f"--{name}", str(value)]
    print("$ babelserve", *command[1:])
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield server
        except BaseException:
            stop(server)
            show(log)
            raise
        if (exit_code := stop(server)) != 0:
            show(log)
            raise DemoFailed(f"the server ended with exit code {exit_code}")


def stop(server: subprocess.Popen[bytes]) -> int:
    """Asks the server to end, and returns its exit code."""
    server.terminate()
    try:
        return server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


def show(log: BinaryIO) -> None:
    """Prints the server's log to standard error."""
    log.seek(0)
    sys.stderr.write(log.read().decode(errors="replace"))


def wait_until_serving(client: Client, server: subprocess.Popen[bytes]) -> None:
    """Waits for the first answer, and says which model gives it.

    Raises:
        DemoFailed: The server ended, or took too long.
    """
    started = time.monotonic()
    while time.monotonic() - started < START_SECONDS:
        if server.poll() is not None:
            raise DemoFailed("the server did not start")
        try:
            model = client.list_models()[0]
        except Unavailable:
            time.sleep(0.05)
            continue
        pairs = ", ".join(f"{source} to {target}" for source, target in model.language_pairs)
        seconds = time.monotonic() - started
        print(f"Serving {model.name} {model.version} ({model.variant}, {pairs}) after {seconds:.1f} s.\n")
        return
    raise DemoFailed(f"the server was not ready after {START_SECONDS:.0f} s")


def translate(client: Client, texts: list[str]) -> None:
    """Prints each text, its translation, and the time from call to answer.

    Raises:
        DemoFailed: A text could not be translated.
    """
    ((source, target),) = client.list_models()[0].language_pairs[:1]
    for text in texts:
        started = time.perf_counter()
        result = client.translate([text], source=source, target=target)
        milliseconds = 1000 * (time.perf_counter() - started)
        (translation,) = result.translations
        if translation.error is not None:
            raise DemoFailed(translation.error.message)
        print(f"{source}: {text}\n{target}: {translation.text}   [{milliseconds:.0f} ms]\n")


def show_metrics(url: str) -> None:
    """Scrapes the metrics once and prints the lines that tell most.

    Raises:
        DemoFailed: The page lacks one of them.
    """
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=10) as response:
        page: str = response.read().decode()
    print(f"From {url}:")
    for name in METRICS:
        line = re.search(rf"^{name} .*$", page, re.MULTILINE)
        if line is None:
            raise DemoFailed(f"the metrics page has no {name}")
        print(f"  {line[0]}")
    print()


if __name__ == "__main__":
    sys.exit(main())
