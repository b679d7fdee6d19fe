import gzip
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.acceptance.copied import KINDS, is_copied
from tests.acceptance.translation_quality import (
    DATA,
    chrf,
    judge_capitals,
    judge_copying,
    judge_everyday,
    judge_general,
    main,
    read_rows,
)
from tests.babelserve.scripted_server import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


def upper(sources: list[str]) -> list[str]:
    return [source.upper() for source in sources]


def forget(name: str, rows: Sequence[Sequence[str]]) -> None: ...


def write_dev(folder: Path, name: str, *lines: str) -> None:
    (folder / f"{name}.dev.tsv.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def test_everyday_sentences_are_120_with_two_references_each() -> None:
    rows = read_rows(DATA / "everyday.tsv")

    assert len(rows) == len({source for source, _, _ in rows}) == 120
    assert all(one and other and one != other for _, one, other in rows)
    assert {3, 24} <= {len(source.split()) for source, _, _ in rows} <= set(range(3, 26))


def test_lines_to_copy_are_25_of_each_kind_and_hold_their_own_parts() -> None:
    rows = read_rows(DATA / "copying.tsv")

    assert Counter(kind for kind, *_ in rows) == dict.fromkeys(KINDS, 25)
    assert [row for row in rows if len(row) < 3 or not is_copied(row[0], row[2:], row[1])] == []
    assert len({source for _, source, *_ in rows}) == 200


def test_lines_for_capitals_are_100_in_mixed_case() -> None:
    rows = read_rows(DATA / "capitals.tsv")

    assert len({source for source, _ in rows}) == 100
    assert all(reference and not source.isupper() for source, reference in rows)


def test_chrf_takes_the_nearest_reference_of_each_line() -> None:
    assert chrf(["Hallo du", "Gute Reise"], ["Hallo du", "Bis bald"], ["Moin", "Gute Reise"]) == pytest.approx(100)
    assert chrf(["Hallo du", "Gute Reise"], ["Hallo du", "Bis bald"]) < 60


def test_everyday_sentences_are_judged_by_both_references() -> None:
    rows = [["Hi", "Hallo du da", "Guten Morgen"], ["Bye", "Auf Wiedersehen", "Bis bald mal"]]
    kept: dict[str, Sequence[Sequence[str]]] = {}

    [check] = judge_everyday(rows, lambda sources: ["Guten Morgen", "Auf Wiedersehen"], kept.__setitem__)

    assert (check.measured, check.passed) == ("100.00", True)
    assert kept == {"everyday": [("Hi", "Guten Morgen"), ("Bye", "Auf Wiedersehen")]}


def test_copied_lines_are_counted_by_kind() -> None:
    rows = [["url", "See www.a.org", "www.a.org"], ["time", "At 7 pm", "7 pm"], ["time", "At 8 pm", "8 pm"]]
    kept: dict[str, Sequence[Sequence[str]]] = {}

    total, *kinds = judge_copying(rows, lambda _: ["Siehe www.b.org", "Um 19 Uhr", "Um 8 Uhr"], kept.__setitem__)

    assert (total.measured, total.passed) == ("33.33", False)
    found = {check.name: check.measured for check in kinds}
    assert (found["- url"], found["- time"], found["- price"]) == ("0 of 1", "1 of 2", "0 of 0")
    assert [verdict for _, verdict, _, _ in kept["copying"]] == ["NOT COPIED", "copied", "NOT COPIED"]


def test_capitals_lose_nothing_where_only_the_case_is_another() -> None:
    translations = {"Mind the road": "Achte auf die Straße", "MIND THE ROAD": "ACHTE AUF DIE STRASSE"}
    rows = [["Mind the road", "Achte auf die Straße"]]

    *_, lost = judge_capitals(rows, lambda sources: [translations[source] for source in sources], forget)

    assert (lost.measured, lost.passed) == ("0.00", True)


def test_capitals_lose_what_is_translated_worse() -> None:
    translations = {"Mind the road": "Achte auf die Straße", "MIND THE ROAD": "MINDEN THE ROAD"}
    rows = [["Mind the road", "Achte auf die Straße"]]

    mixed, _, lost = judge_capitals(rows, lambda sources: [translations[source] for source in sources], forget)

    assert mixed.measured == "100.00"
    assert lost.passed is False


def test_corpora_are_judged_each_and_together_but_for_the_unseen(tmp_path: Path) -> None:
    write_dev(tmp_path, "games", "go\tGO", "run\tRUN", "never read\tXXXXX")
    write_dev(tmp_path, "tatoeba", "hello there\tHELLO THERE")
    write_dev(tmp_path, "wmt_refs_2019_2024", "some news\tNachrichten")

    checks = {check.name: check for check in judge_general(tmp_path, upper, forget, max_lines=2, reverse=False)}

    assert checks["- games, 2 lines: chrF"].measured == "100.00"
    assert checks["general, may be trained on: chrF"].measured == "100.00"
    assert checks["general, may be trained on: chrF"].passed
    assert checks["general, never trained on: chrF"].passed is False
    assert len(checks) == 5


def test_a_folder_without_dev_sets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no \*\.dev\.tsv\.gz in "):
        judge_general(tmp_path, upper, forget, max_lines=2, reverse=False)


def test_the_command_judges_a_live_server_and_keeps_what_it_said(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "general").mkdir()
    write_dev(tmp_path / "general", "games", "go\tGO")
    arguments = ["--address", server.address, "--general", str(tmp_path / "general"), "--beam-size", "2"]

    status = main([*arguments, "--output", str(tmp_path / "out")])

    printed = capsys.readouterr().out
    assert status == 1
    assert "FAILED: 2 of 5 checks hold" in printed  # whoever answers in capitals loses nothing to them
    assert {request.decoding.beam_size for request in server.service.requests} == {2}
    names = {"everyday", "copying", "capitals", "tatoeba_held_out", "games"}
    assert {path.stem for path in (tmp_path / "out").iterdir()} == names
    assert read_rows(tmp_path / "out" / "everyday.tsv")[5] == ["Safe travels, Grandpa!", "SAFE TRAVELS, GRANDPA!"]


def test_the_other_direction_has_the_sides_exchanged_and_nothing_to_copy(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dev(tmp_path, "games", "go\tlos")

    main(["--address", server.address, "--reverse", "--general", str(tmp_path), "--output", str(tmp_path / "out")])

    requests = server.service.requests
    assert {(each.source_language_code, each.target_language_code) for each in requests} == {("de", "en")}
    assert "everyday, 120 lines, 1 references: chrF" in capsys.readouterr().out
    assert {path.stem for path in (tmp_path / "out").iterdir()} == {"everyday", "capitals", "tatoeba_held_out", "games"}
    assert read_rows(tmp_path / "out" / "games.tsv") == [["los", "LOS"]]


def test_a_server_that_does_not_answer_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))

        assert main(["--address", f"127.0.0.1:{taken.getsockname()[1]}", "--wait", "0"]) == 2

    assert capsys.readouterr().out == ""
