"""A system in a process of its own, which `worker_process.py` is: commands and answers are lines of JSON."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.bench.systems import Ids, Settings

_PROCESS = Path(__file__).with_name("worker_process.py")


class Worker(AbstractContextManager["Worker"]):
    """Runs a system in another process; leaving the block ends it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # More OpenMP threads than asked for would run in CTranslate2's operators outside of its own count.
        environment = {**os.environ, "OMP_NUM_THREADS": str(settings.threads), **settings.environment}
        environment["PYTHONPATH"] = os.pathsep.join([settings.checkout, os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            # -P: not this folder, but the checkout comes first on the path.
            [sys.executable, "-P", str(_PROCESS), json.dumps(dataclasses.asdict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=settings.checkout,
            env=environment,
        )
        self._receive()  # it has loaded

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def translate(
        self, sources: Sequence[Ids], *, beam_size: int, one_by_one: bool = False, with_ids: bool = False
    ) -> dict[str, Any]:
        """Translates in the worker; `worker_process.timed` says what comes back.

        Raises:
            RuntimeError: the worker died; its stderr is ours.
        """
        command = {"sources": sources, "beam_size": beam_size, "one_by_one": one_by_one, "with_ids": with_ids}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._receive()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.settings} ended with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
