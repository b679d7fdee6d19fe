import contextlib
import errno
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import sacrebleu
import sentencepiece
import torch

from export import evaluate
from export.evaluate import main, scores, translate_by_checkpoint
from model import ctc_search
from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from model.one_pass import OnePass
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.babelserve.scripted_server import ScriptedServer
from tests.certificates import authority
from tests.model.runs import one_pass_recipe

DATA = Path(__file__).parents[1] / "data"
SOURCE, REFERENCE, CHECKPOINT = DATA / "multi30k_val_200.en.txt", DATA / "multi30k_val_200.de.txt", DATA / "tiny.pt"


class Command:
    """Runs `babelserve-evaluate` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def __call__(self, *arguments: object) -> dict[str, Any]:
        self.monkeypatch.setattr(sys, "argv", ["babelserve-evaluate", *map(str, arguments)])
        main()
        printed: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return printed

    def fails(self, *arguments: object) -> tuple[Any, str]:
        """Returns the exit code and stderr; nothing may stand on stdout."""
        self.monkeypatch.setattr(sys, "argv", ["babelserve-evaluate", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = self.capsys.readouterr()
        assert captured.out == ""
        return caught.value.code, captured.err


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "test.tsv"
    path.write_text("one dog\tEin Hund läuft hier\ntwo cats\tZwei Katzen schlafen dort\n", encoding="utf-8")
    return path


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


def hypotheses(folder: Path, *lines: str) -> Path:
    path = folder / "hypotheses.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_scores_are_those_of_sacrebleu_with_its_signatures() -> None:
    system = ["The cat sat on the mat .", "A dog runs fast today."]
    references = ["The cat sat on the mat.", "A dog runs slowly today."]

    found = scores(system, references)

    assert found["bleu"] == round(sacrebleu.corpus_bleu(system, [references]).score, 2)
    assert found["chrf"] == round(sacrebleu.corpus_chrf(system, [references]).score, 2)
    assert found["sentences"] == 2
    assert str(found["bleu_signature"]).startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert str(found["chrf_signature"]).startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_bleu_is_what_its_formula_gives_by_hand() -> None:
    # "a b c d e" against "a b c d f": precisions 4/5, 3/4, 2/3, 1/2, whose product is 1/5; no brevity penalty
    assert scores(["a b c d e"], ["a b c d f"])["bleu"] == pytest.approx(100 * 0.2**0.25, abs=0.01)


def test_case_and_perfection_count() -> None:
    assert scores(["Ein Hund läuft hier"], ["Ein Hund läuft hier"])["bleu"] == pytest.approx(100)
    assert scores(["ein hund läuft hier"], ["Ein Hund Läuft Hier"])["bleu"] == pytest.approx(0)


def test_a_file_of_translations_is_scored(command: Command, corpus: Path, tmp_path: Path) -> None:
    path = hypotheses(tmp_path, "Ein Hund läuft hier", "Zwei Katzen schlafen dort")

    found = command("--tsv", corpus, "--hypotheses", path)

    assert (found["sentences"], found["bleu"]) == (2, pytest.approx(100))


def test_translations_are_those_of_the_lines_with_their_numbers(command: Command, corpus: Path, tmp_path: Path) -> None:
    whole, output = corpus.read_text(encoding="utf-8").splitlines(), tmp_path / "output.txt"
    corpus.write_text("\n".join(["no reference\t", whole[0], "", *whole]), encoding="utf-8")
    dog, cats = "Ein Hund läuft hier", "Zwei Katzen schlafen dort"
    path = hypotheses(tmp_path, "etwas", dog, "", dog, cats)

    for limit in ("2", "3"):
        found = command("--tsv", corpus, "--hypotheses", path, "--limit", limit, "--output", output)

        assert (found["sentences"], found["bleu"]) == (int(limit), pytest.approx(100))
        assert output.read_text(encoding="utf-8").splitlines() == ["", dog, "", dog, cats][: int(limit) + 2]
    code, message = command.fails("--tsv", corpus, "--hypotheses", hypotheses(tmp_path, dog, dog, cats))
    assert (code, message.splitlines()[-1]) == (2, "babelserve-evaluate: 1 translations for 3 sentences")


def test_limit_takes_the_first_pairs(command: Command, corpus: Path, tmp_path: Path) -> None:
    path = hypotheses(tmp_path, "Ein Hund läuft hier", "etwas ganz anderes")

    found = command("--tsv", corpus, "--hypotheses", path, "--limit", "1")

    assert (found["sentences"], found["bleu"]) == (1, pytest.approx(100))


@pytest.mark.parametrize("lines", [["one"], ["one", "two", "three"]])
def test_a_file_with_another_number_of_translations_is_refused(
    command: Command, corpus: Path, tmp_path: Path, lines: list[str]
) -> None:
    code, message = command.fails("--tsv", corpus, "--hypotheses", hypotheses(tmp_path, *lines))

    assert code == 2
    assert message == f"babelserve-evaluate: {len(lines)} translations for 2 sentences\n"


def test_files_that_cannot_be_used_are_named(command: Command, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "latin-1").write_bytes("Mädchen\n".encode("latin-1"))
    good = hypotheses(tmp_path, "Ein Hund", "Zwei Katzen")

    for arguments, fault in (
        (["--hypotheses", tmp_path / "latin-1"], f"--hypotheses {tmp_path}/latin-1 is no UTF-8: "),
        (["--hypotheses", tmp_path / "a\x1b[2J"], r"[Errno 2] No such file or directory: "),
        (["--hypotheses", good, "--output", tmp_path / "none" / "out"], "[Errno 2] No such file or directory: "),
    ):
        code, message = command.fails("--tsv", corpus, *arguments)

        assert code == 2
        assert message.startswith(f"babelserve-evaluate: {fault}")
        assert message.rstrip("\n").isprintable()


def test_a_limit_under_one_is_refused(command: Command, corpus: Path, tmp_path: Path) -> None:
    code, message = command.fails("--tsv", corpus, "--hypotheses", hypotheses(tmp_path, "a", "b"), "--limit", "-1")

    assert code == 2
    assert message.endswith("argument --limit: must be at least 1, not -1\n")


def test_only_line_feeds_separate_translations(command: Command, corpus: Path, tmp_path: Path) -> None:
    path = hypotheses(tmp_path, "Ein Hund\u2028läuft hier", "Zwei Katzen\x0bschlafen dort")

    assert command("--tsv", corpus, "--hypotheses", path)["sentences"] == 2


def test_a_checkpoint_is_scored_and_its_translations_are_written(command: Command, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    arguments = ("--source", SOURCE, "--reference", REFERENCE, "--checkpoint", CHECKPOINT, "--limit", "20")

    found = command(*arguments, "--output", output)

    lines = output.read_text(encoding="utf-8").splitlines()
    references = REFERENCE.read_text(encoding="utf-8").splitlines()[:20]
    assert found == scores(lines, references)
    assert found["bleu"] > 60
    assert command(*arguments, "--beam-size", "1")["sentences"] == 20


def test_an_output_is_opened_before_the_work_and_kept_if_it_fails(
    command: Command, server: ScriptedServer, corpus: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.txt"
    output.write_text("of an earlier and longer evaluation\n", encoding="utf-8")
    arguments = ("--tsv", corpus, "--server", server.address)

    code, message = command.fails(*arguments, "--output", tmp_path / "none" / "out")
    command.fails("--tsv", tmp_path / "none", "--server", server.address, "--output", output)

    assert (code, server.service.requests) == (2, [])
    assert message.startswith("babelserve-evaluate: [Errno 2] No such file or directory: ")
    assert output.read_text(encoding="utf-8") == "of an earlier and longer evaluation\n"
    command(*arguments, "--output", "/dev/null")
    command(*arguments, "--output", output)
    assert output.read_text(encoding="utf-8") == "ONE DOG\nTWO CATS\n"


def test_scores_are_printed_though_the_disk_is_full(
    command: Command, server: ScriptedServer, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command("--tsv", corpus, "--server", server.address, "--output", "/dev/full")

    printed = capsys.readouterr()
    assert json.loads(printed.out)["sentences"] == 2
    assert printed.err == "babelserve-evaluate: [Errno 28] No space left on device\n"


def test_a_full_disk_leaves_what_the_output_has(
    command: Command, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.txt"
    output.write_text("of an earlier evaluation\n", encoding="utf-8")
    path = hypotheses(tmp_path, "x" * 10_000, "y")
    script = (
        "import resource, signal, sys; from export.evaluate import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        f"sys.argv[1:] = ['--tsv', {str(corpus)!r}, '--hypotheses', {str(path)!r}, '--output', {str(output)!r}]\n"
        "main()"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)

    assert (done.returncode, output.read_text(encoding="utf-8")) == (2, "of an earlier evaluation\n")
    assert done.stderr.startswith(f"babelserve-evaluate: {output} cannot be written: ".encode())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["hypotheses.txt", "out.txt", "test.tsv"]


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EACCES])
def test_an_output_takes_the_text_itself_where_no_draft_can_take_its_place(
    command: Command, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "replace", refuse)  # as of a file that is mounted alone
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    output = tmp_path / "out.txt"
    output.write_text("of an earlier and longer evaluation\n", encoding="utf-8")

    command("--tsv", corpus, "--hypotheses", hypotheses(tmp_path, "Ein Hund", "Katzen"), "--output", output)

    assert output.read_text(encoding="utf-8") == "Ein Hund\nKatzen\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["hypotheses.txt", "out.txt", "test.tsv"]


def test_a_run_that_fails_makes_no_output(command: Command, corpus: Path, tmp_path: Path) -> None:
    path = hypotheses(tmp_path, "one alone")

    for output in (tmp_path / "out.txt", tmp_path):
        command.fails("--tsv", corpus, "--hypotheses", path, "--output", output)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["hypotheses.txt", "test.tsv"]


def test_a_line_break_of_a_model_and_a_broken_last_line_keep_the_numbers_of_lines(
    command: Command, server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test.tsv").write_text("one dog\tein Hund\ntwo cats\tzwei\nbroken\n\n", encoding="utf-8")
    monkeypatch.setattr(evaluate, "translate_by_server", lambda *_, **__: ["A\nDOG", "CATS"])

    command("--tsv", tmp_path / "test.tsv", "--server", server.address, "--output", tmp_path / "out.txt")

    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "A DOG\nCATS\n\n\n"


def test_heads_are_measured_as_a_table_and_as_json(
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, output = tmp_path / "other.tsv", tmp_path / "heads.json"
    other.write_text("a man\tein Mann\nbroken\n", encoding="utf-8")
    arguments = ["--checkpoint", CHECKPOINT, "--heads", corpus, other, "--limit", "1", "--output", output]
    monkeypatch.setattr(sys, "argv", ["babelserve-evaluate", *map(str, arguments)])

    main()

    printed = capsys.readouterr().out
    assert "text 2: loss " in printed
    assert f"tokens, {other}\n" in printed
    found = json.loads(output.read_text())
    assert list(found["loss"]) == [str(corpus), str(other)]
    assert found["tokens"][str(other)] < 8
    assert all(f"{each['attention']} {each['layer']}.{each['head']} " in printed for each in found["heads"])
    assert "broken" not in caplog.text  # behind the limit


def test_a_bundle_stands_for_its_checkpoint(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--checkpoint", BUILTIN_BUNDLE, "--heads", corpus, "--limit", "1"]
    monkeypatch.setattr(sys, "argv", ["babelserve-evaluate", *map(str, arguments)])

    main()

    assert "encoder 5.3" in capsys.readouterr().out


def test_heads_need_a_checkpoint_and_no_other_text(command: Command, corpus: Path, tmp_path: Path) -> None:
    for arguments in (
        ("--heads", corpus, "--server", "localhost:1"),
        ("--heads", corpus, "--checkpoint", CHECKPOINT, "--tsv", corpus),
    ):
        code, message = command.fails(*arguments)
        assert code == 2
        assert "give --heads with --checkpoint" in message
    assert command.fails("--heads", corpus, "--checkpoint", tmp_path)[0] == 2


def test_a_checkpoint_translates_in_the_order_asked_for() -> None:
    sources = SOURCE.read_text(encoding="utf-8").splitlines()[:6]

    forward = translate_by_checkpoint(CHECKPOINT, sources, beam_size=1)
    backward = translate_by_checkpoint(CHECKPOINT, sources[::-1], beam_size=1)

    assert forward == backward[::-1]
    assert len(set(forward)) == 6


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_one_pass_network_translates_by_its_own_search(beam_size: int, tmp_path: Path) -> None:
    config, tokenizer = one_pass_recipe().model, load_checkpoint(CHECKPOINT).tokenizer
    torch.manual_seed(0)
    network = OnePass(config).eval()
    weights = network.state_dict()
    save_checkpoint(tmp_path / "a.pt", Checkpoint(config=config, weights=weights, tokenizer=tokenizer))
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    sources = ["A dog runs.", "Two cats sleep on a red sofa."]

    found = translate_by_checkpoint(tmp_path / "a.pt", sources, beam_size)

    expected = ctc_search.translate(network, [[*ids, config.eos_id] for ids in pieces.encode(sources)], beam_size)
    assert found == pieces.decode(expected)
    assert any(found)


def test_a_server_is_scored_through_its_api(
    command: Command, server: ScriptedServer, corpus: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.txt"

    found = command("--tsv", corpus, "--server", server.address, "--beam-size", "3", "--output", output)

    assert output.read_text(encoding="utf-8") == "ONE DOG\nTWO CATS\n"
    assert found == scores(["ONE DOG", "TWO CATS"], ["Ein Hund läuft hier", "Zwei Katzen schlafen dort"])
    (request,) = server.service.requests
    assert request.target_language_code == "de"
    assert request.decoding.beam_size == 3


def test_the_target_language_is_the_servers(command: Command, server: ScriptedServer, corpus: Path) -> None:
    server.service.language_pairs = [("fr", "en")]

    command("--tsv", corpus, "--server", server.address, "--model", "scripted")

    (request,) = server.service.requests
    assert (request.source_language_code, request.target_language_code, request.model) == ("", "en", "scripted")


def test_of_several_target_languages_one_must_be_named(command: Command, server: ScriptedServer, corpus: Path) -> None:
    server.service.language_pairs = [("fr", "en"), ("fr", "de")]

    code, message = command.fails("--tsv", corpus, "--server", server.address)
    command("--tsv", corpus, "--server", server.address, "--target-language", "en", "--source-language", "fr")

    assert code == 2
    assert message == "babelserve-evaluate: a target language must be named; the server has: de, en\n"
    (request,) = server.service.requests
    assert (request.source_language_code, request.target_language_code) == ("fr", "en")


def test_a_server_with_tls_and_keys_is_scored(command: Command, corpus: Path, tmp_path: Path) -> None:
    issued = authority().issue()
    server = ScriptedServer(grpc.ssl_server_credentials([(issued.key, issued.chain)]))
    (tmp_path / "ca.pem").write_bytes(authority().pem)
    (tmp_path / "key").write_text("secret\n")
    flags = ["--tls-ca", tmp_path / "ca.pem", "--api-key-file", tmp_path / "key"]

    with contextlib.closing(server):
        assert command("--tsv", corpus, "--server", server.address, *flags)["sentences"] == 2
        code, message = command.fails("--tsv", corpus, "--server", server.address)

    assert server.service.metadata[0]["authorization"] == "Bearer secret"
    assert (code, message) == (
        1,
        f"babelserve-evaluate: {server.address}: the server speaks TLS at this port, and the client does not\n",
    )


def test_a_busy_server_is_waited_for(command: Command, server: ScriptedServer, corpus: Path) -> None:
    server.service.most_texts = 1

    assert command("--tsv", corpus, "--server", server.address)["sentences"] == 2


def test_a_text_without_a_translation_is_not_scored(command: Command, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("good\tgut\n!INVALID_ARGUMENT too odd\tseltsam\n", encoding="utf-8")

    code, message = command.fails("--tsv", tmp_path / "test.tsv", "--server", server.address)

    assert (code, message) == (1, f"babelserve-evaluate: {server.address}: sentence 2: too odd\n")


def test_a_servers_words_are_told_without_what_a_terminal_obeys(
    command: Command, server: ScriptedServer, tmp_path: Path
) -> None:
    (tmp_path / "test.tsv").write_text("!INVALID_ARGUMENT \x1b[2J\tgut\n", encoding="utf-8")

    code, message = command.fails("--tsv", tmp_path / "test.tsv", "--server", server.address)

    assert (code, message) == (1, f"babelserve-evaluate: {server.address}: sentence 1: \\x1b[2J\n")


def test_a_server_that_does_not_answer_ends_with_one(command: Command, corpus: Path) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        code, message = command.fails("--tsv", corpus, "--server", address, "--wait", "0")

    assert code == 1
    assert message.startswith(f"babelserve-evaluate: {address}: ")
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--tsv", "missing.tsv", "--hypotheses", "x"], "missing.tsv"),
        (["--source", SOURCE, "--reference", REFERENCE, "--checkpoint", "missing.pt"], "missing.pt"),
        (["--source", SOURCE, "--reference", REFERENCE, "--checkpoint", SOURCE], "is not a babelserve checkpoint"),
        (["--source", SOURCE, "--reference", REFERENCE, "--hypotheses", CHECKPOINT], "utf-8"),
        (["--source", SOURCE, "--reference", REFERENCE], "one of the arguments --server --checkpoint --hypotheses"),
        (["--source", SOURCE, "--checkpoint", CHECKPOINT], "give either --tsv or both --source and --reference"),
        (
            ["--tsv", "a", "--source", "b", "--reference", "c", "--checkpoint", CHECKPOINT],
            "give either --tsv or both --source and --reference",
        ),
        (["--tsv", "a", "--server", "s", "--checkpoint", CHECKPOINT], "not allowed with argument"),
        (["--tsv", "a", "--checkpoint", CHECKPOINT, "--beam-size", "0"], "--beam-size: must be in 1..16, not 0"),
        (["--tsv", "a", "--checkpoint", CHECKPOINT, "--beam-size", "99"], "--beam-size: must be in 1..16, not 99"),
        (["--tsv", "a", "--checkpoint", CHECKPOINT, "--beam-size=--"], "beam-size: "),
        (["--tsv", "a", "--checkpoint", CHECKPOINT, "--beam-size", "many"], "invalid int value"),
        (["--tsv", "a", "--server", "localhost:1", "--wait", "-1"], "--wait: must be at least 0, not -1"),
        (["--tsv", "a", "--server", "localhost:1", "--wait", "nan"], "--wait: must be at least 0, not nan"),
    ],
)
def test_wrong_arguments_and_unreadable_files_end_with_two(
    command: Command, arguments: list[object], expected: str
) -> None:
    code, message = command.fails(*arguments)

    assert code == 2
    assert expected in message
    assert "Traceback" not in message


def test_files_of_unequal_length_end_with_two(command: Command, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("Ein Satz\n", encoding="utf-8")

    code, message = command.fails("--source", SOURCE, "--reference", tmp_path / "short.txt", "--checkpoint", CHECKPOINT)

    assert code == 2
    assert "has 200 lines" in message


def test_an_empty_file_ends_with_two(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").touch()

    assert command.fails("--tsv", tmp_path / "empty.tsv", "--checkpoint", CHECKPOINT) == (
        2,
        f"babelserve-evaluate: {tmp_path}/empty.tsv: none of its 0 lines has text in UTF-8 on both sides\n",
    )
