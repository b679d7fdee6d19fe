import json
from pathlib import Path
from typing import Any

import pytest

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest
from server.bulk.worker import Done, Worker
from server.errors import EngineFailed, InvalidRequest, SettingsError
from server.translation.bulk import Bulk, BulkText
from tests.server.bulk.parts import SENTENCES, job_of, output


def test_shards_however_cut_give_the_same_rows(tmp_path: Path) -> None:
    outputs, told = [], list[Done]()
    for shard_bytes in (40, 1 << 20):
        job = job_of(tmp_path, output=str(tmp_path / str(shard_bytes)), shard_bytes=shard_bytes)
        shards = job.plan()
        worker = Worker(job)
        worker.run(shards, told.append)
        worker.close()
        outputs.append(output(tmp_path / str(shard_bytes)))

    lines = outputs[0].decode().splitlines()
    assert outputs[0] == outputs[1]
    assert lines[:5] == lines[5:10]
    assert [bool(line) for line in lines[:5]] == [bool(text) for text in SENTENCES]
    assert "Hund" in lines[0]
    assert sum(done.rows for done in told) == 2 * 20
    assert job.num_failed() == 0
    assert sum(done.tokens for done in told) > 2 * 4 * 15


def test_a_row_without_a_text_and_one_that_is_too_long_have_errors_and_the_others_translations(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "text": "A dog runs."},
        {"id": 2},
        {"id": 3, "text": "x" * (2 << 20) + "x"},
        {"id": 4, "text": "Tea."},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = job_of(tmp_path, inputs=[str(tmp_path / "in.jsonl")], form="jsonl", shard_bytes=1 << 20)
    worker = Worker(job)
    worker.run(job.plan(), lambda _: None)
    worker.close()

    found = [json.loads(line) for line in output(tmp_path / "out").splitlines()]
    assert [row["id"] for row in found] == [1, 2, 3, 4]
    assert [row["translation"] is None for row in found] == [False, True, True, False]
    assert found[1]["translation_error"] == "'text' is no text in the row"
    assert found[2]["translation_error"] == "text: must be at most 2097152 bytes of UTF-8, not 2097153"
    assert job.num_failed() == 2


def test_wrong_options_end_the_job_and_not_its_rows(tmp_path: Path) -> None:
    request = TranslateRequest(target_language_code="de", decoding=DecodingOptions(beam_size=99))
    job = job_of(tmp_path, request=request.SerializeToString())
    worker = Worker(job)

    with pytest.raises(InvalidRequest, match=r"decoding\.beam_size"):
        worker.run(job.plan(), lambda _: None)

    worker.close()
    assert output(tmp_path / "out") == b""


def test_a_step_that_fails_ends_the_job_and_is_no_error_of_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(tmp_path)
    worker = Worker(job)
    whole = Bulk._answer

    async def answer(self: Bulk[Any], text: BulkText, _: object, *others: Any) -> None:
        await whole(self, text, EngineFailed("a step failed"), *others)

    monkeypatch.setattr(Bulk, "_answer", answer)

    with pytest.raises(EngineFailed):
        worker.run(job.plan(), lambda _: None)

    worker.close()
    assert output(tmp_path / "out") == b""


def test_an_input_that_cannot_be_read_ends_the_job_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(tmp_path)
    shards = job.plan()
    worker = Worker(job)
    (tmp_path / "in.txt").unlink()

    with pytest.raises(FileNotFoundError, match=r"in\.txt"):
        worker.run(shards, lambda _: None)

    worker.close()


def test_another_model_is_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    job.plan()
    job.claim_models(["another"])

    with pytest.raises(SettingsError, match="another job has begun there"):
        Worker(job)
