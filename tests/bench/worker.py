"""A system in a process of its own: `python -m tests.bench.worker SETTINGS_JSON`, commands by JSON lines on stdin.

The parent's side is `Worker`. A command is `{"sources": ..., "beam_size": ..., "one_by_one": ..., "with_ids": ...}`;
the answer is what `tests.bench.systems.timed` returns, with their lengths in place of the ids unless these are asked
for.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from tests.bench.systems import Ids, Settings, open_system, peak_resident_bytes, timed
from tests.bench.text import ROOT


class Worker(AbstractContextManager["Worker"]):
    """Runs a system in another process; leaving the block ends it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # More OpenMP threads than asked for would run in CTranslate2's operators outside of its own count.
        environment = {**os.environ, "OMP_NUM_THREADS": str(settings.threads), **settings.environment}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.worker", json.dumps(dataclasses.asdict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        self._receive()  # it has loaded

    def translate(
        self, sources: Sequence[Ids], *, beam_size: int, one_by_one: bool = False, with_ids: bool = False
    ) -> dict[str, Any]:
        """Translates in the worker; see the module for what comes back.

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


def main() -> None:
    """The worker's side: says that it has loaded, then answers each line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    system = open_system(Settings(**json.loads(sys.argv[1])))

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    answer({"loaded": True})
    for line in sys.stdin:
        command = json.loads(line)
        result = timed(system, command["sources"], command["beam_size"], command["one_by_one"])
        result["lengths"] = [len(ids) for ids in result["ids"]]
        result["peak_resident_bytes"] = peak_resident_bytes()
        if not command["with_ids"]:
            del result["ids"]
        answer(result)
    system.close()


if __name__ == "__main__":
    main()
