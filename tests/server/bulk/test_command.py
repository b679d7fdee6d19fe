from pathlib import Path

import pytest

from babelserve.v1.translation_pb2 import TranslateRequest
from server.bulk.command import build_parser, read_job, read_model_settings
from server.bulk.job import Job
from server.errors import SettingsError
from server.settings.settings import Settings


def job_of(*words: str) -> Job:
    return read_job(build_parser().parse_args(["--target", "de", "--out", "o", *words]), Settings())


def test_bulk_texts_take_all_rows_unless_a_flag_says_otherwise() -> None:
    assert read_model_settings([]) == Settings(bulk_share=1.0)
    assert read_model_settings(["--bulk-share", "0.5", "--lanes", "3"]) == Settings(bulk_share=0.5, lanes=3)


def test_the_format_is_that_of_the_suffix_or_the_flag() -> None:
    assert [job_of(f"a.{suffix}").form for suffix in ("txt", "jsonl", "ndjson", "parquet")] == [
        "txt",
        "jsonl",
        "jsonl",
        "parquet",
    ]
    assert job_of("a.tsv", "--column", "2").form == "tsv"
    assert job_of("s3://a/b.x", "--format", "txt").form == "txt"


def test_options_are_those_of_a_request() -> None:
    job = job_of("a.txt", "--source", "en", "--beam-size", "3", "--options", '{"decoding": {"lengthPenalty": 0.5}}')

    request = TranslateRequest.FromString(job.request)
    assert (request.source_language_code, request.target_language_code) == ("en", "de")
    assert (request.decoding.beam_size, request.decoding.length_penalty) == (3, 0.5)


def test_slashes_at_the_end_of_a_folder_are_left_out() -> None:
    outs = ["o", "o//", "/", "s3://a/o/", "memory://"]

    assert [job_of("a.txt", "--out", out).output for out in outs] == ["o", "o", "/", "s3://a/o", "memory://"]


def test_a_folder_with_a_slash_at_its_end_is_one_job_s(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")

    def job(column: str) -> Job:
        return job_of(str(tmp_path / "a.txt"), "--column", column, "--out", f"memory:/{tmp_path}/out/")

    job("b").plan()
    with pytest.raises(SettingsError, match="another job has begun there"):
        job("c").plan()


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["a.csv"], "--format: must be given for inputs that end with csv"),
        (["a.txt", "b.tsv"], "--format: must be given"),
        (["a.tsv"], "--column: must be a number from 1 for TSV, not 'text'"),
        (["a.tsv", "--column", "0"], "--column: must be a number from 1 for TSV, not '0'"),
        (["a.tsv", "--column", "9" * 5000], "--column: must be a number from 1 for TSV, not '999"),
        (["a.jsonl", "--into", "\udcff"], r"--into: must be valid Unicode, not '\udcff'"),
        (["a.txt", "--source", "\udcff"], r"--source: must be valid Unicode, not '\udcff'"),
        (["a.txt", "--beam-size", "9" * 20], "--beam-size: must be in 1..16, not 999"),
        (["a.txt", "--options", "[" * 99_999], "--options: "),
        (["a.txt", "--shard-kib", "0"], "--shard-kib: must be at least 1, not 0"),
        (["a.txt", "--ray-workers", "-1"], "--ray-workers: must be at least 0, not -1"),
        (["a.txt", "--options", '{"nothing": 1}'], "--options: "),
        (["a.txt", "--options", "{"], "--options: "),
        (["a.txt", "--options", '{"contents": ["a"]}'], "--options: contents must be empty"),
    ],
)
def test_faults_name_the_flag(words: list[str], fault: str) -> None:
    with pytest.raises(SettingsError) as caught:
        job_of(*words)

    assert any(each.startswith(fault) for each in caught.value.faults), caught.value.faults
