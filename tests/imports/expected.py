"""What `generate` makes of the test sentences: the format of `expected/*.json.gz`. Needs no `transformers`."""

import gzip
import json
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Run:
    """A way to search. `max_tokens` counts everything generated: a forced first token and eos, but not the start."""

    beam_size: int
    early_stopping: bool
    forced_eos: bool
    length_penalty: float
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A source, and for each run the index of its output in `outputs`, which is without repetition.

    `outputs` are the generated ids, with a forced first token and, if the sentence ended, eos; `texts` what the
    tokenizer makes of them. `forced_bos` is the forced first token's id.
    """

    text: str
    source_language: str | None
    target_language: str | None
    source_ids: list[int]
    forced_bos: int | None
    outputs: list[list[int]]
    texts: list[str]
    chosen: list[int]


@dataclass(frozen=True, slots=True)
class Expected:
    """All that is expected of a model; `versions` made it."""

    versions: dict[str, str]
    eos_id: int
    runs: list[Run]
    sentences: list[Sentence]

    def outputs(self, run: Run) -> list[list[int]]:
        """Returns the ids of every sentence in that run."""
        index = self.runs.index(run)
        return [sentence.outputs[sentence.chosen[index]] for sentence in self.sentences]


def runs(max_tokens: int) -> list[Run]:
    """Returns the runs: greedy and beam 4, each stop rule, and other length penalties.

    With a penalty of 2 long hypotheses win, so it matters there whether one waits for them.
    """
    return [
        *(Run(1, False, forced, 1.0, max_tokens) for forced in (False, True)),
        *(Run(4, early, forced, 1.0, max_tokens) for early in (True, False) for forced in (False, True)),
        *(Run(4, early, True, penalty, max_tokens) for early, penalty in ((False, 0.6), (False, 2.0), (True, 2.0))),
    ]


def read(path: Path) -> Expected:
    """Reads a file that `write` has written."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    return Expected(
        versions=content["versions"],
        eos_id=content["eos_id"],
        runs=[Run(**run) for run in content["runs"]],
        sentences=[Sentence(**sentence) for sentence in content["sentences"]],
    )


def write(path: Path, expected: Expected) -> None:
    """Writes gzipped JSON, the same bytes for the same content."""
    content = json.dumps(asdict(expected), ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(gzip.compress(content.encode(), 9, mtime=0))


def by_length(rows: list[list[int]], most: int = 128) -> list[list[int]]:
    """Returns indices of rows in batches of equal length, so that nothing is padded."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[len(row)].append(i)
    return [group[start : start + most] for group in groups.values() for start in range(0, len(group), most)]


def trim(row: list[int], eos_id: int) -> list[int]:
    """Returns what `generate` gives for a sentence without the start token and what follows eos."""
    ids = row[1:]
    return ids[: ids.index(eos_id) + 1] if eos_id in ids else ids


def report(expected: Expected) -> dict[str, Any]:
    """Returns how many sentences end by themselves, per run, and how many differ from the first run."""
    first = expected.outputs(expected.runs[0])
    table = {}
    for run in expected.runs:
        ids = expected.outputs(run)
        # At the limit a forced eos cannot be told from one that the model chose: what is shorter has ended by itself.
        ended = sum(row[-1] == expected.eos_id and len(row) < run.max_tokens for row in ids)
        differ = sum(a != b for a, b in zip(ids, first, strict=True))
        table[str(run)] = {"sentences": len(ids), "ended": ended, "unlike the first run": differ}
    return table
