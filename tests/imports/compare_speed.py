"""`python -m tests.imports.compare_speed BUNDLE CTRANSLATE2_MODEL`: how fast an imported model is, beside CTranslate2.

The model is one of `tests.imports.make_shape`, imported and converted. Random weights do not end sentences, so all get
as many tokens, which is kind to CTranslate2: its batches lose nothing by rows that are done. Targets begin with the
token of their language, if the model has such tokens: without it the end of a sentence would follow itself. Both run in
turns, with a lane or a translator of one thread for each core; CTranslate2 in several settings: the best counts.

    python -m tests.imports.make_shape opus-base SHAPE
    babelserve-import SHAPE BUNDLE --source en --target de
    ct2-transformers-converter --model SHAPE --output_dir CT2 --quantization int8
    python -m tests.imports.compare_speed BUNDLE CT2
"""

import argparse
import dataclasses
import time
from pathlib import Path

from server.bundle.bundle import Bundle, open_bundle
from server.bundle.languages import Ids
from server.bundle.tokenizer import Tokenizer
from server.models.machine import usable_cores
from tests.bench.machine import describe_machine, versions
from tests.bench.report import print_table
from tests.bench.rounds import Setting, compare
from tests.bench.systems import Settings, resident_bytes
from tests.bench.text import DEFAULT_TEXT
from tests.bench.worker import Worker

_THEIRS: tuple[tuple[int, dict[str, str]], ...] = (
    (512, {}),
    (1024, {}),
    (2048, {}),
    (1024, {"CT2_USE_MKL": "0"}),
)  # padded source tokens of a batch, and with what code


def main() -> None:
    """Entry point."""
    arguments = _parse()
    print_table("Machine", ["what", "value"], [*describe_machine().items(), *versions().items()])
    bundle = open_bundle(arguments.bundle, "cpu-int8")
    sources = _sources(bundle, arguments.sentences, 2 * arguments.max_tokens)
    ours = Settings(
        system="ours",
        path=str(arguments.bundle.resolve()),
        precision="cpu-int8",
        workers=usable_cores(),
        batch=0,
        max_tokens=arguments.max_tokens,
        forced_prefix=_forced_prefix(bundle),
    )
    path = str(arguments.ctranslate2.resolve())
    theirs = dataclasses.replace(ours, system="ctranslate2", path=path, precision="int8")
    systems = {"ours": ours} | {
        f"CTranslate2 {i}": dataclasses.replace(theirs, batch=tokens, environment=variables)
        for i, (tokens, variables) in enumerate(_THEIRS, start=1)
    }
    print_table(
        "Start", ["system", "seconds", "resident MB"], [_start(name, systems[name]) for name in list(systems)[:2]]
    )
    for beam_size in arguments.beams:
        setting = Setting(
            section="offline",
            model=arguments.bundle.name,
            name=f"int8, beam {beam_size}",
            beam_size=beam_size,
            one_by_one=False,
            systems=systems,
        )
        compare(setting, sources, arguments.rounds)


def _forced_prefix(bundle: Bundle) -> Ids:
    """Returns what the model's first target language begins with."""
    languages = bundle.manifest.languages
    return next((each.prefix for each in languages.target.values()), ()) if languages else ()


def _sources(bundle: Bundle, count: int, longest: int) -> list[Ids]:
    """Returns the first sentences of the text that have at most so many tokens."""
    tokenizer = Tokenizer(bundle.manifest, bundle.read)
    lines = DEFAULT_TEXT.read_text(encoding="utf-8").splitlines()
    found = [tuple(tokenizer.encode(line.strip(), ())) for line in lines if line.strip()]
    return [ids for ids in found if len(ids) <= longest][:count]


def _start(name: str, settings: Settings) -> list[object]:
    started = time.perf_counter()
    with Worker(settings) as worker:
        return [name, time.perf_counter() - started, resident_bytes(worker.pid) / 1e6]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.imports.compare_speed", description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("ctranslate2", type=Path, help="the same model as CTranslate2 has it")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4], help="beam sizes (default 1 4)")
    parser.add_argument("--rounds", type=int, default=5, help="alternated rounds (default 5)")
    parser.add_argument("--sentences", type=int, default=256, help="of the text (default 256)")
    parser.add_argument(
        "--max-tokens", type=int, default=40, help="of each translation, at least half of a source's (default 40)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
