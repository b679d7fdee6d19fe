"""Second of three: a live server on the GPU, and how fast it is.

`babelserve --variant cuda-fp16` as a process: SERVING, the golden sentence, 1,000 sentences alone and among others,
chrF and what requests ask for beside cpu-fp32, 2,000 calls under load, cancels, SIGTERM, memory. Then the time of a
step by its rows, which kernels take it, and the benchmark beside the plain PyTorch decoder.
"""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import sacrebleu

from server.bundle.bundle import Bundle
from server.bundle.manifest_file import read_manifest
from server.bundle.tokenizer import Tokenizer
from tests.acceptance.calls import Languages, open_stub, translate, translate_concurrently
from tests.acceptance.served_equals_alone import compare, plan_calls
from tests.acceptance.server_process import BUILTIN_BUNDLE, ServerProcess, running_server
from tests.bench.text import ROOT
from tests.gpu import subjects
from tests.gpu.asked import compare_answers
from tests.gpu.calling import CALLERS, call, server_flags
from tests.gpu.device import used_mib
from tests.gpu.kernels import list_kernels
from tests.gpu.parts import Context, Part, parser_of, run_parts
from tests.gpu.steps import time_steps

DATA = ROOT / "tests" / "data"
_START_SECONDS = 90.0
_LEAST_EQUAL = 0.995
_MOST_LESS_CHRF = 0.3
_LEAST_SPEED = 2.0  # times the PyTorch decoder's, offline, greedy, base
_CANCEL_EVERY = 3


def _start(context: Context) -> None:
    context.shared["server"] = None
    before = used_mib(context.device)
    server = context.stack.enter_context(running_server(server_flags(context.device), timeout_seconds=_START_SECONDS))
    context.shared["server"] = server
    context.figure("seconds to SERVING", server.seconds_to_serving)
    context.figure("device MiB taken at the start", used_mib(context.device) - before)
    context.figure("first lines of the log", server.stderr().splitlines()[:12])


def _golden(context: Context) -> None:
    server, bundle = _server(context), Bundle(directory=BUILTIN_BUNDLE, manifest=read_manifest(BUILTIN_BUNDLE))
    golden, tokenizer = bundle.manifest.golden, Tokenizer(bundle.manifest, bundle.read)
    expected = tokenizer.decode(golden.outputs[server_flags(context.device)[-1]].ids)
    with open_stub(server.address) as stub:
        [found] = translate(stub, [golden.source_text], Languages(), beam_size=golden.beam_size)
    context.check("golden sentence", found.text, found.text == expected, expected)


def _sentences(context: Context) -> None:
    """Translates 1,000 sentences among others and alone, and the same by cpu-fp32, for chrF."""
    server = _server(context)
    sources, references = read_pairs(6 if context.is_quick else 500)
    with open_stub(server.address) as stub:
        comparisons, faults = compare(stub, sources, Languages(), CALLERS)
    context.check("calls that failed", len(faults), not faults, "0")
    equal = sum(each.is_equal for each in comparisons) / len(sources)
    context.check("equal alone and among others", equal, equal >= _LEAST_EQUAL, f">= {_LEAST_EQUAL}")
    for each in [each for each in comparisons if not each.is_equal][:20]:
        context.figure(f"sentence {each.index}, beam {each.beam_size}, score differs by", each.score_difference)
    if faults:
        return
    exact = _translate_exactly(context, sources)
    chrf, theirs = (
        sacrebleu.CHRF().corpus_score(texts, [references]).score
        for texts in ([each.served.text for each in comparisons], exact)
    )
    context.figure("chrF of cpu-fp32", theirs)
    is_met = chrf >= theirs - _MOST_LESS_CHRF or context.is_quick  # a few sentences say nothing
    context.check("chrF", chrf, is_met, f">= {theirs - _MOST_LESS_CHRF:.2f}, of all sentences")


def _translate_exactly(context: Context, sources: Sequence[str]) -> list[str]:
    with _exact_server() as server, open_stub(server.address) as stub:
        replies = translate_concurrently(stub, plan_calls(sources), Languages(), callers=CALLERS)
    texts = []
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
        texts += [translation.text for translation in reply]
    return texts


def _asked(context: Context) -> None:
    sources, _ = read_pairs(3 if context.is_quick else 50)
    with _exact_server() as exact:
        compare_answers(context, _server(context), exact, sources)


def _exact_server() -> AbstractContextManager[ServerProcess]:
    flags = ["--bundle", str(subjects.trained().bundle.directory), "--variant", "cpu-fp32"]
    return running_server(flags, timeout_seconds=_START_SECONDS)


def read_pairs(count: int) -> tuple[list[str], list[str]]:
    """Returns sentences and their translations, so many of general text and as many captions."""
    sides = []
    for language in ("en", "de"):
        lines: list[str] = []
        for name in ("general_dev", "multi30k_val"):
            text = gzip.decompress((DATA / f"{name}.{language}.gz").read_bytes()).decode("utf-8")
            lines += text.split("\n")[:count]
        sides.append(lines)
    return sides[0], sides[1]


def _calls(context: Context) -> None:
    server, count = _server(context), 64 if context.is_quick else 2000
    sentences, _ = read_pairs(500)
    started = time.monotonic()
    _only_ok(context, call(server, sentences, count), count)
    context.figure("calls/s", count / (time.monotonic() - started))
    context.figure("device MiB of all, under load", used_mib(context.device))


def _cancels(context: Context) -> None:
    server, count = _server(context), 64 if context.is_quick else 600
    sentences, _ = read_pairs(500)
    found = call(server, sentences, count, cancel_every=_CANCEL_EVERY)
    context.figure("cancelled", found.pop("CANCELLED", 0))
    _only_ok(context, found, found.total())
    _only_ok(context, call(server, sentences, 8), 8)  # afterwards


def _only_ok(context: Context, found: Counter[str], count: int) -> None:
    context.check(f"{count} calls", json.dumps(found), found == {"OK": count}, "OK all")


def _ends(context: Context) -> None:
    """Sends SIGTERM amid calls: what runs is answered, what comes too late is refused."""
    server = _server(context)
    sentences, _ = read_pairs(500)
    with ThreadPoolExecutor(1) as pool:
        calls = pool.submit(call, server, sentences, 64 if context.is_quick else 2000)
        call(server, sentences, 32)  # by now many are under way
        started = time.monotonic()
        code = server.stop()
        context.figure("seconds to the end", time.monotonic() - started)
        found = calls.result()
    context.check("exit code", code, code == 0, "0")
    context.check("amid calls", json.dumps(found), found.keys() <= {"OK", "UNAVAILABLE"}, "OK or UNAVAILABLE")
    (context.out / "live-server.log").write_text(server.stderr()[-1_000_000:], encoding="utf-8")


def _server(context: Context) -> ServerProcess:
    if "server" not in context.shared:
        _start(context)
    server: ServerProcess | None = context.shared["server"]
    if server is None:
        raise RuntimeError("the server has not started")
    return server


def _of_two_models(measure: Callable[[Context, subjects.Subject], None], context: Context) -> None:
    if context.is_quick:
        tried = [subjects.tiny(context.work)]
    else:
        first = subjects.trained() if subjects.has_weights() else subjects.random("student", context.work)
        tried = [first, subjects.random("base", context.work)]
    for subject in tried:
        measure(context, subject)


def _bench(context: Context, sections: Sequence[str], models: Sequence[str], seconds: float) -> None:
    """Runs the benchmark as a process and takes its rows over."""
    out = context.out / f"bench-{'-'.join([*sections, *models])}.json"
    command = [sys.executable, "-m", "tests.bench", *sections, "--device", context.device, "--out", str(out)]
    command += ["--work", str(context.work)]
    quick = ["--quick", "--rounds", "1", "--seconds", "1", "--model", "student"]
    command += quick if context.is_quick else ["--rounds", "5", "--seconds", "8", "--model", *models]
    code = run_command(command, seconds)
    context.check("exit code of the benchmark", code, code == 0, "0")
    for row in json.loads(out.read_text(encoding="utf-8"))["rows"]:
        _take_over(context, row)


def _take_over(context: Context, row: dict[str, Any]) -> None:
    name = f"{row['model']}, {row['setting']}, {row['measure']}"
    context.figure(name, row.get("ours"))
    if row.get("theirs") is None:
        return
    against = row.get("against", "CTranslate2")
    context.figure(f"{name}, {against}", row["theirs"])
    has_bar = (row["model"], row["measure"], against) == ("base", "tokens/s", "PyTorch")
    if has_bar and row["section"] == "offline":
        speed = row["ours"] / row["theirs"]
        context.check(f"{name}, ours / {against}", speed, speed >= _LEAST_SPEED, f">= {_LEAST_SPEED}")


def run_command(command: Sequence[str], seconds: float) -> int:
    """Runs a command, whose output is ours, and ends all of it when its time is up; returns the exit code."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def _benchmark(name: str, seconds: float, sections: Sequence[str], models: Sequence[str]) -> Part:
    run: Callable[[Context], None] = partial(_bench, sections=sections, models=models, seconds=seconds)
    return Part(name, seconds, run)


PARTS = (
    Part("start", _START_SECONDS, _start),
    Part("golden", 10, _golden),
    Part("sentences", 120, _sentences),
    Part("asked", 60, _asked),
    Part("calls", 40, _calls),
    Part("cancels", 20, _cancels),
    Part("ends", 30, _ends),
    _benchmark("offline-base", 220, ["offline"], ["base"]),
    Part("steps", 60, partial(_of_two_models, time_steps)),
    Part("kernels", 60, partial(_of_two_models, list_kernels)),
    _benchmark("served-base", 150, ["served"], ["base"]),
    _benchmark("latency", 80, ["latency"], ["base", "student"]),
    _benchmark("offline-student", 200, ["offline"], ["student"]),
    _benchmark("served-student", 150, ["served"], ["student"]),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts and returns the exit status."""
    return run_parts("live", PARTS, parser_of("live", __doc__, PARTS).parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
