"""The worker's side: `python -P worker_process.py SETTINGS_JSON` runs the checkout that is first on the path.

That may be older than this file. Only its `tests.bench.systems` (`Settings`, `System`, `open_system` and
`peak_resident_bytes`) and the server's settings are imported, and settings that it does not know are left out.

A command is `{"sources": ..., "beam_size": ..., "one_by_one": ..., "with_ids": ...}`; the answer is what `timed`
returns and the peak of resident memory, with the lengths of the ids in their place unless these are asked for.
"""

import dataclasses
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from tests.bench.systems import Ids, Settings, System, open_system, peak_resident_bytes


def main() -> None:
    """Says that it has loaded, then answers each line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    system = open_system(read_settings(json.loads(sys.argv[1])))

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


def read_settings(given: dict[str, Any]) -> Settings:
    """Returns those that this checkout knows, with the server's own default in place of a batch of 0."""
    known = {each.name for each in dataclasses.fields(Settings)}
    settings = Settings(**{name: value for name, value in given.items() if name in known})
    return settings if settings.batch else dataclasses.replace(settings, batch=_default_rows())


def timed(system: System, sources: Sequence[Ids], beam_size: int, one_by_one: bool) -> dict[str, Any]:
    """Translates and measures; `one_by_one` submits each sentence when the one before is done.

    Returns:
        `seconds`, `cpu_seconds` of the whole process, `ids`, `padding_share`, and one by one the `latencies`.
    """
    started, cpu_started = time.perf_counter(), time.process_time()
    latencies: list[float] = []
    if one_by_one:
        ids = []
        for source in sources:
            before = time.perf_counter()
            ids += system.translate([source], beam_size)
            latencies.append(time.perf_counter() - before)
    else:
        ids = system.translate(sources, beam_size)
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
        "ids": ids,
        "latencies": latencies,
        "padding_share": 0.0 if one_by_one else system.padding_share(sources),
    }


def _default_rows() -> int:
    try:
        settings = importlib.import_module("server.settings.settings")
    except ModuleNotFoundError:  # an older checkout has the module itself here
        settings = importlib.import_module("server.settings")
    rows: int = settings.Settings().max_rows
    return rows


if __name__ == "__main__":
    main()
