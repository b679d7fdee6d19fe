import os
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from server.bulk.cell import Cell
from server.bulk.job import Job
from server.errors import SettingsError
from tests.server.bulk.parts import SENTENCES, job_of, output


def copy_all(job: Job) -> None:
    """Writes each text of what is left as its own translation."""
    for shard in job.left(job.plan()):
        rows, cells = job.read(shard)
        job.write(shard, rows, cells)


def test_shards_have_all_rows_in_order(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    copy_all(job)

    assert len(job.plan()) > 3
    assert output(tmp_path / "out").decode().splitlines() == 4 * SENTENCES


def test_inputs_with_wildcards_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"part-{name}.txt").write_text(f"{name}\n")
    job = job_of(tmp_path, inputs=[str(tmp_path / "part-*.txt")])
    copy_all(job)

    assert output(tmp_path / "out") == b"a\nb\n"


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "part[1].txt").write_text("a\n")
    (tmp_path / "part1.txt").write_text("b\n")
    job = job_of(tmp_path, inputs=[str(tmp_path / "part[1].txt")])
    copy_all(job)

    assert output(tmp_path / "out") == b"a\n"


def test_what_is_done_is_left_alone(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    first, *others = job.plan()
    rows, cells = job.read(first)
    job.write(first, rows, cells)

    assert job.left(job.plan()) == others


def test_an_output_that_is_not_whole_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(tmp_path)
    first, *_ = job.plan()
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space")))

    with pytest.raises(OSError, match="no space"):
        job.write(first, [b"a"], [Cell("a")])

    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["_job.json"]


def test_what_a_killed_run_has_left_behind_goes_at_the_end(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    copy_all(job)
    for name in (".00000-000001.txt.5ca1ab1e", "._failed-00000-000001-2.5ca1ab1e"):
        (tmp_path / "out" / name).write_bytes(b"A dog")
    job.finish()

    assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("output", ["{}/out", "memory:/{}/out"])
def test_rows_with_errors_are_counted_whichever_run_wrote_them(tmp_path: Path, output: str) -> None:
    def run() -> Job:
        return job_of(tmp_path, output=output.format(tmp_path))

    first, second, third, *_ = shards = run().plan()
    run().write(first, [b"a", b"b", b"c"], [Cell(None, "odd"), Cell("b"), Cell(None, "odd")])
    run().write(second, [b"a"], [Cell("a")])
    run().write(third, [b"a"], [Cell(None, "odd")])

    assert run().left(shards) == shards[3:]
    assert run().num_failed() == 3


@pytest.mark.parametrize("output", ["{}/out", "memory:/{}/out"])
def test_errors_are_counted_by_a_listing_alone(tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(tmp_path, output=output.format(tmp_path))
    shards = job.plan()
    for shard in shards:
        job.write(shard, [b"a"], [Cell(None, "odd")])
    read = list[object]()
    for files in (LocalFileSystem, MemoryFileSystem):
        monkeypatch.setattr(files, "cat_file", lambda *each, **_: read.append(each))

    assert job.num_failed() == len(shards)
    assert read == []


def test_no_glob_takes_a_count_of_errors_for_rows(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    job.write(job.plan()[0], [b"a"], [Cell(None, "odd")])

    assert [path.name for path in (tmp_path / "out").glob("*.txt")] == ["00000-000000.txt"]


def test_a_shard_counts_once_though_a_killed_run_has_left_another_count(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    first, second, *_ = shards = job.plan()
    job.write(first, [b"a", b"b"], [Cell(None, "odd"), Cell(None, "odd")])
    Path(first.output).unlink()  # it was killed between the two files
    job.write(second, [b"a"], [Cell(None, "odd")])
    assert job.left(shards) == [first, *shards[2:]]
    job.write(first, [b"a", b"b"], [Cell(None, "odd"), Cell("b")])

    assert job.num_failed() == 3


@pytest.mark.parametrize("change", [{"shard_bytes": 32}, {"column": "other"}, {"request": b""}])
def test_a_folder_of_another_job_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    job_of(tmp_path).plan()

    with pytest.raises(SettingsError, match="another job has begun there"):
        job_of(tmp_path, **change).plan()


def test_an_input_that_has_changed_is_another_job(tmp_path: Path) -> None:
    job_of(tmp_path).plan()
    with (tmp_path / "in.txt").open("a") as file:
        file.write("One more.\n")

    with pytest.raises(SettingsError, match="another job has begun there"):
        job_of(tmp_path).plan()


def test_other_models_are_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    job.plan()
    job.claim_models(["a 1", "b 2"])
    job.claim_models(["b 2", "a 1"])

    with pytest.raises(SettingsError, match="another job has begun there"):
        job.claim_models(["a 1"])


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nothing\.txt: there is no such file"):
        job_of(tmp_path, inputs=[str(tmp_path / "nothing.txt")]).plan()


@pytest.mark.parametrize("output", ["in.txt", "in.txt/out"])
def test_an_output_that_is_no_folder_is_named(tmp_path: Path, output: str) -> None:
    with pytest.raises(SettingsError, match=rf"^--out: {tmp_path}/{output} cannot be written: (File exists|Not a dir)"):
        job_of(tmp_path, output=str(tmp_path / output)).plan()


def test_a_protocol_that_nobody_knows_is_named(tmp_path: Path) -> None:
    for change in ({"inputs": ["foo://x/in.txt"]}, {"output": "foo://x/out"}):
        with pytest.raises(SettingsError, match=r"^foo://x/.*: Protocol not known: foo"):
            job_of(tmp_path, **change).plan()


def test_what_is_no_file_in_the_folder_is_waited_for_by_nobody(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "_job.json")

    with pytest.raises(SettingsError, match=r"out/_job\.json: is no file$"):
        job_of(tmp_path).plan()
    (out / "_job.json").unlink()
    shards = job_of(tmp_path).plan()
    (out / "00000-000000.txt").mkdir()
    assert job_of(tmp_path).left(shards) == shards


def test_a_description_without_an_end_is_another_job_s(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with (tmp_path / "out" / "_job.json").open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(SettingsError, match="another job has begun there"):
        job_of(tmp_path).plan()


def test_urls_of_other_file_systems_are_read_and_written(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/bulk/in.txt", b"a\nb\n")
    job = job_of(tmp_path, inputs=["memory://bulk/in.txt"], output="memory://bulk/out")
    copy_all(job)
    job.finish()

    assert memory.cat_file("/bulk/out/00000-000000.txt") == b"a\nb\n"
    assert memory.exists("/bulk/out/_SUCCESS")
    memory.rm("/bulk", recursive=True)


def test_an_object_store_is_read_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    pytest.importorskip("s3fs")
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {"ENDPOINT_URL": f"http://{host}:{port}", "KEY": "testing", "SECRET": "testing"}.items():
        monkeypatch.setitem(fsspec.config.conf.setdefault("s3", {}), name.lower(), value)
    store = fsspec.filesystem("s3")
    store.mkdir("bulk")
    store.pipe_file("bulk/in.txt", "".join(f"{each}\n" for each in SENTENCES).encode())
    job = job_of(tmp_path, inputs=["s3://bulk/*.txt"], output="s3://bulk/out")
    copy_all(job)

    names = sorted(store.find("bulk/out"))
    server.stop()
    assert [name.rpartition("/")[2] for name in names] == ["00000-000000.txt", "00000-000001.txt", "_job.json"]
