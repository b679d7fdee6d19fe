"""Jobs for tests: a few sentences, the built-in model with one lane, greedy."""

import dataclasses
from pathlib import Path
from typing import Any

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest
from server.bulk.job import Job
from server.settings.settings import Settings

SENTENCES = ["A dog runs.", "The house is green.", "", "Two men play football in the park.", "I like tea."]


def job_of(tmp_path: Path, **changes: Any) -> Job:
    """Returns a job whose input, `in.txt`, has 20 lines, in shards of 64 bytes; its output folder is `out`."""
    file = tmp_path / "in.txt"
    if not file.exists():
        file.write_text("".join(f"{each}\n" for each in 4 * SENTENCES), encoding="utf-8")
    request = TranslateRequest(target_language_code="de", decoding=DecodingOptions(beam_size=1))
    job = Job(
        inputs=[str(file)],
        output=str(tmp_path / "out"),
        form="txt",
        column="text",
        into="translation",
        shard_bytes=64,
        request=request.SerializeToString(deterministic=True),
        settings=Settings(lanes=1, variant="cpu-int8"),
    )
    return dataclasses.replace(job, **changes)


def output(folder: Path) -> bytes:
    """Returns the outputs of all shards, one after another."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("0*")))
