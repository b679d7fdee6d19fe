"""Other people's models as whoever has downloaded one serves them: imported, served, asked for by languages' codes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from babelserve.client import Client
from babelserve.errors import InvalidRequest
from babelserve.results import TranslateResult
from server.text.full_stops import end_like
from tests.acceptance.server_process import REPOSITORY, running_server
from tests.imports.converting import CONVERTED, with_tokenizer
from tests.imports.expected import Expected, Run, Sentence, read
from tests.imports.families import EXPECTED, MODELS


def import_model(source: Path, out: Path, *flags: str) -> str:
    """Runs `babelserve-import`; returns what it prints."""
    command = [sys.executable, "-m", "export.imports", str(source), str(out), *flags]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # tiny tensors: a second thread only waits
    done = subprocess.run(command, cwd=REPOSITORY, env=one_thread, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def served(bundle: Path) -> Iterator[Client]:
    """A client of a server of the float32 variant, whose texts are those of `generate`."""
    flags = ["--bundle", str(bundle), "--variant", "cpu-fp32", "--lanes", "1"]
    with running_server(flags) as server, Client(server.address) as client:
        yield client


def expected_of(
    expected: Expected, run: Run, is_wanted: Callable[[Sentence], bool] = lambda sentence: True
) -> dict[str, str]:
    """Returns texts of one sentence each, with what `generate` makes of them."""
    index = expected.runs.index(run)
    return {
        sentence.text: sentence.texts[sentence.chosen[index]].strip()
        for sentence in expected.sentences[:200]
        if is_wanted(sentence) and sum(map(sentence.text.count, ".!?")) < 2
    }


def test_an_opus_mt_model_is_imported_served_and_asked(tmp_path: Path) -> None:
    downloaded = Path(shutil.copytree(MODELS / "marian-shared", tmp_path / "opus-mt-en-de"))
    wanted = expected_of(read(EXPECTED / "marian-shared.json.gz"), Run(4, False, True, 1.0, 24))
    # Such as it has learnt: our samples are four times as long, and what int8 keeps of its babble on them is chance.
    text = tmp_path / "sentences.txt"
    text.write_text("\n".join(wanted), encoding="utf-8")

    printed = import_model(downloaded, tmp_path / "bundle", "--text", str(text))
    with served(tmp_path / "bundle") as client:
        (model,) = client.list_models()
        result = client.translate(list(wanted), source="en-GB", target="deu", max_output_tokens=24)
        with pytest.raises(InvalidRequest, match="fr"):
            client.translate(["Hello."], source="en", target="fr")

    assert f"{len(wanted)} of {len(wanted)} sentences identical to the model itself in float32, beam 4" in printed
    assert f"of {len(wanted)} as in float32, chrF between them" in printed
    assert model.name == "opus-mt-en-de"
    assert (result.source, result.target) == ("en", "de")
    assert len(wanted) > 150
    check_translations(wanted, result)


def raised(text: str) -> str:
    return text[:1].upper() + text[1:]


def check_translations(wanted: dict[str, str], result: TranslateResult) -> None:
    """Of texts that the model was shown whole; its vocabulary is tiny, and lacks characters of the others.

    Each text begins with a capital, and so does its translation, whatever the model begins with. It ends as its source.
    """
    found = {text: t for text, t in zip(wanted, result.translations, strict=True) if not t.kept}
    assert len(found) > 0.6 * len(wanted)
    assert {text: t.text for text, t in found.items()} == {text: end_like(text, raised(wanted[text])) for text in found}


def test_a_model_of_many_languages_mixes_them_in_its_batches(tmp_path: Path) -> None:
    expected, run = read(EXPECTED / "nllb.json.gz"), Run(4, False, False, 1.0, 24)
    directions = [
        ("eng_Latn", "deu_Latn"),
        ("eng_Latn", "nld_Latn"),
        ("deu_Latn", "eng_Latn"),
        ("deu_Latn", "nld_Latn"),
    ]
    wanted = [
        expected_of(expected, run, lambda s, way=way: (s.source_language, s.target_language) == way)  # type: ignore[misc]
        for way in directions
    ]

    languages = ["--source", "en,de", "--target", "de,en,nl"]
    import_model(MODELS / "nllb", tmp_path / "bundle", "--variants", "cpu-fp32", *languages)
    with served(tmp_path / "bundle") as client, ThreadPoolExecutor(len(directions)) as at_once:
        results = at_once.map(
            lambda texts, way: client.translate(
                list(texts), source=way[0], target=way[1], beam_size=4, max_output_tokens=23, end_loops=False
            ),
            wanted,
            directions,
        )
        found = list(results)

    assert [(result.source, result.target) for result in found] == [
        ("en", "de"),
        ("en", "nl"),
        ("de", "en"),
        ("de", "nl"),
    ]
    for texts, result in zip(wanted, found, strict=True):
        assert len(texts) > 35
        check_translations(texts, result)


def test_a_converted_model_is_compared_with_ctranslate2(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="needs ctranslate2, of `make bench`")
    source = with_tokenizer("nllb", Path(shutil.copytree(CONVERTED / "nllb", tmp_path / "nllb")))
    flags = ["--source", "en,de", "--target", "de,en", "--variants", "cpu-fp32", "--check"]

    printed = import_model(source, tmp_path / "bundle", *flags)

    assert "LICENCE: cc-by-nc-4.0: this model must not be used commercially" in printed
    assert "68 of 68 sentences identical to those of ctranslate2, greedy" in printed


def test_a_model_of_fairseq_is_served_with_moses(tmp_path: Path) -> None:
    pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")
    wanted = expected_of(read(EXPECTED / "fsmt.json.gz"), Run(4, False, True, 1.0, 24))

    import_model(MODELS / "fsmt", tmp_path / "bundle", "--variants", "cpu-fp32")
    with served(tmp_path / "bundle") as client:
        texts = list(wanted)
        result = client.translate(
            texts, source="en", target="de", beam_size=4, length_penalty=1.0, max_output_tokens=24
        )

    assert len(wanted) > 150
    check_translations(wanted, result)
