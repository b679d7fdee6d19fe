"""Somebody who reads a page: does what its blocks say, and looks at whether that comes out which the page shows.

Three things differ, none in what the reader types: ports are free ones; `.venv` is that of the tests, so nothing is
installed; and what would run in a terminal of its own goes on until its successor starts. Of the output that a page
shows, any figure may be another, and "..." stands for anything.
"""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.server_process import free_ports

ROOT = Path(__file__).parents[2]
SERVERS = {"babelserve": "SERVING", "prometheus": "Server is ready"}  # what goes on, and what it says once it is there
PATIENCE_SECONDS = 100.0
# Of a recipe, when it is about to be used.
TINY = {"vocab_size": 600, "d_model": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ffn_dim": 32}
FEW = {"batch_tokens": 400, "warmup_steps": 2, "max_steps": 4, "cooldown_steps": 2, "evaluate_every": 4}


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the blocks of a page, each with its language."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


@dataclass
class Reader:
    """Somebody who goes through the page in a checkout.

    Attributes:
        checkout: where they are.
        ports: what stands for the ports of the page.
        servers: what runs in terminals of its own, by name.
        printed: by the last block of Python, for a block of text that shows it.
    """

    checkout: Path
    ports: dict[str, int]
    servers: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    printed: str = ""

    def run(self, language: str, block: str) -> None:
        """Does what one block says."""
        for port, free in self.ports.items():
            block = block.replace(f"localhost:{port}", f"localhost:{free}")
        if language in ("yaml", "csv"):
            (self.checkout / block.splitlines()[0].removeprefix("# ")).write_text(block)
        elif language == "python":
            self.printed = self.shell(f"python - <<'END'\n{block}END")
        elif language == "text":
            check_output(block.splitlines(), self.printed)
        else:
            commands, expected = read_console(block)
            name = commands.split()[0]
            if name in SERVERS:
                self.start(name, commands)
                check_output(expected, self.log(name))
            else:
                self.follow(commands, expected)

    def follow(self, commands: str, expected: list[str]) -> None:
        """Runs commands and looks at what they print; of what is scraped, until it is there."""
        if commands.startswith("babelserve-train de-en/recipe.toml"):
            make_tiny(self.checkout / "de-en" / "recipe.toml")
            for language in ("de", "en"):
                shorten(self.checkout / "de-en" / "data" / f"dev.{language}")
        started = time.monotonic()
        while True:
            printed = self.shell(commands)
            is_asked_of_prometheus = f"localhost:{self.ports['9090']}" in commands
            if not is_asked_of_prometheus or time.monotonic() - started > PATIENCE_SECONDS / 2:
                break
            if missing_line(expected, printed) is None:
                break
        check_output(expected, printed)

    def shell(self, commands: str) -> str:
        """Returns what commands print; fails if one does."""
        done = subprocess.run(
            ["bash", "-e", "-c", self.preamble() + commands],
            cwd=self.checkout,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        return done.stdout

    def preamble(self) -> str:
        """Each command runs in a shell of its own, all of them as after the page's `. .venv/bin/activate`."""
        address = f"localhost:{self.ports['50051']}"
        return (
            ". .venv/bin/activate\n"
            f'babelserve-translate() {{ command babelserve-translate --address {address} "$@"; }}\n'
        )

    def environment(self) -> dict[str, str]:
        """Ports of the server, and this checkout's packages whatever is installed."""
        ports = {"PORT": "50051", "HEALTH_PORT": "50052", "ADMIN_PORT": "50053", "METRICS_PORT": "9464"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        set_here = {f"BABELSERVE_{name}": str(self.ports[port]) for name, port in ports.items()}
        return {**kept, **set_here, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}

    def start(self, name: str, command: str) -> None:
        """Starts what goes on, in place of what did so before, and waits until it is there."""
        self.stop(name)
        with (self.checkout / f"{name}.log").open("wb") as log:
            self.servers[name] = subprocess.Popen(
                ["bash", "-c", f"{self.preamble()}exec {command}"],
                cwd=self.checkout,
                env=self.environment(),
                stdout=log,
                stderr=log,
            )
        started = time.monotonic()
        while SERVERS[name] not in self.log(name):
            assert self.servers[name].poll() is None, self.log(name)
            assert time.monotonic() - started < PATIENCE_SECONDS, self.log(name)

    def log(self, name: str) -> str:
        """Returns what a server has written so far."""
        return (self.checkout / f"{name}.log").read_text(errors="replace")

    def stop(self, name: str) -> None:
        """Presses Ctrl-C where a server runs."""
        if name in self.servers:
            server = self.servers.pop(name)
            server.send_signal(signal.SIGINT)
            server.wait(PATIENCE_SECONDS)


def open_reader(checkout: Path) -> Reader:
    """Returns a reader in a folder that looks like this checkout."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (checkout / entry.name).symlink_to(entry)
    venv = checkout / ".venv"
    venv.mkdir()
    for entry in Path(sys.prefix).iterdir():
        if not entry.name.startswith("installed-"):
            (venv / entry.name).symlink_to(entry)
    for mark in ("installed-cpu", "installed-dev"):  # make finds nothing to install
        (venv / mark).touch()
    names = ("50051", "50052", "50053", "9464", "9090")
    return Reader(checkout=checkout, ports=dict(zip(names, free_ports(len(names)), strict=True)))


def read_console(block: str) -> tuple[str, list[str]]:
    """Returns the commands, and the lines that they print."""
    lines = block.splitlines()
    commands = "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    return commands, [line for line in lines if not line.startswith("$ ")]


def missing_line(expected: list[str], printed: str) -> str | None:
    """Returns the first line of the page that was not printed after those before it."""
    lines = iter(printed.splitlines())
    for line in expected:
        figures = re.sub(r"\d[\d.,:-]*", "0", line)
        pattern = re.escape(figures).replace(r"\.\.\.", ".*").replace("0", r"\d[\d.,:-]*")
        if line != "..." and not any(re.fullmatch(pattern, each) for each in lines):
            return line
    return None


def check_output(expected: list[str], printed: str) -> None:
    assert missing_line(expected, printed) is None, printed


def make_tiny(recipe: Path) -> None:
    """Makes the network tiny, and its training short."""
    text = recipe.read_text()
    for key, value in {**TINY, **FEW}.items():
        text, found = re.subn(rf"^{key} = \d+", f"{key} = {value}", text, flags=re.MULTILINE)
        assert found == 1, key
    recipe.write_text(text)


def shorten(dev: Path) -> None:
    """Leaves two words of each line, because a network that has learnt next to nothing translates to the limit."""
    dev.write_text("".join(f"{' '.join(line.split()[:2])}\n" for line in dev.read_text().splitlines()))
