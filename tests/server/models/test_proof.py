"""Bundles that are proved by a real process."""

import asyncio
import dataclasses
import os
import shutil
import signal
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from server.children import Bounds
from server.models.proof import Unproved, proof_bounds, prove, prove_all, size_bounds
from tests.chaos.hostile_bundles import BUNDLES
from tests.children import children
from tests.server.models.administered import until

LONG = Bounds(60, 1 << 30)


def spoilt(tiny_bundle: Bundle, tmp_path: Path, kind: str) -> Path:
    directory = shutil.copytree(tiny_bundle.directory, tmp_path / kind)
    BUNDLES[kind](directory)
    return directory


async def test_a_good_bundle_is_proved_and_said_to_be(tiny_bundle: Bundle) -> None:
    told: list[str] = []

    assert await prove(tiny_bundle.directory, "cpu-fp32", LONG, told.append) == []
    assert [line.partition(":")[0] for line in told] == ["tiny 0", "cpu-fp32"]


async def test_a_graph_that_does_not_end_is_ended_at_the_deadline(tiny_bundle: Bundle, tmp_path: Path) -> None:
    before = children()

    with pytest.raises(Unproved, match="proving cpu-fp32 has not ended within 3 s"):
        await prove(spoilt(tiny_bundle, tmp_path, "products"), "cpu-fp32", LONG._replace(seconds=3))

    assert children() == before


@pytest.mark.parametrize("kind", ["constant-of-shape", "outer-sum", "doubled"])
async def test_a_graph_that_asks_for_all_memory_does_not_get_it(tiny_bundle: Bundle, tmp_path: Path, kind: str) -> None:
    (fault,) = await prove(spoilt(tiny_bundle, tmp_path, kind), "cpu-fp32", LONG)

    assert "memory" in fault or "alloc" in fault


async def test_who_cancels_a_proof_leaves_no_process(tiny_bundle: Bundle, tmp_path: Path) -> None:
    before = children()
    proving = asyncio.create_task(prove(spoilt(tiny_bundle, tmp_path, "products"), "cpu-fp32", LONG))
    await until(lambda: bool(children() - before))
    begun = children() - before
    for _ in range(100):  # steps of the event loop, in which asyncio opens the pipe to the process
        await asyncio.sleep(0)
    for _ in range(3):  # also while it waits for the end of the process, as the end of an event loop does
        proving.cancel()
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        await proving
    assert not children() & begun


async def test_a_process_that_crashes_or_says_nothing_is_a_fault(tiny_bundle: Bundle, tmp_path: Path) -> None:
    before = children()
    proving = asyncio.create_task(prove(spoilt(tiny_bundle, tmp_path, "products"), "cpu-fp32", LONG))
    await until(lambda: bool(children() - before))
    begun = children() - before
    os.kill(begun.pop(), signal.SIGSEGV)

    assert await proving == [
        f"{tmp_path / 'products'}: the process that proves it, which may have 1024 MiB of memory, was ended by SIGSEGV"
    ]


async def test_a_process_that_is_killed_proves_nothing(tiny_bundle: Bundle, tmp_path: Path) -> None:
    before = children()
    proving = asyncio.create_task(prove(spoilt(tiny_bundle, tmp_path, "products"), "cpu-fp32", LONG))
    await until(lambda: bool(children() - before))
    os.kill((children() - before).pop(), signal.SIGKILL)

    with pytest.raises(Unproved, match="was ended by SIGKILL"):
        await proving


async def test_without_a_process_nothing_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("server.models.proof.run_child", fail)

    with pytest.raises(Unproved, match="no process can be started to prove it: Cannot allocate memory"):
        await prove(tmp_path, "cpu-fp32", LONG)


async def test_no_word_of_a_graph_reaches_the_terminal_as_it_is(tiny_bundle: Bundle, tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("wb") as stderr:
        (fault,) = await prove(spoilt(tiny_bundle, tmp_path, "failing"), "cpu-fp32", LONG, stderr=stderr.fileno())

    assert "Reshape" in fault
    assert (tmp_path / "stderr").read_text() == ""


async def test_faults_are_told_and_all_variants_are_proved(tiny_bundle: Bundle, tmp_path: Path) -> None:
    told: list[str] = []
    good = await prove_all(tiny_bundle.directory, told.append)
    (bad,) = await prove_all(spoilt(tiny_bundle, tmp_path, "loop"), lambda _: None)

    assert good == []
    assert len(told) == 1 + len(tiny_bundle.manifest.variants)
    assert "a Loop, which may never end" in bad


def test_bounds_grow_with_the_weights(tiny_bundle: Bundle) -> None:
    manifest = tiny_bundle.manifest
    variant = manifest.variants["cpu-fp32"]
    weights = dataclasses.replace(variant.files["weights.bin"], bytes=1 << 30)
    large = dataclasses.replace(variant, files={"weights.bin": weights}, halves=None)
    bounds = proof_bounds(dataclasses.replace(manifest, variants={"cpu-fp32": large}), "cpu-fp32")

    assert bounds == size_bounds(1 << 30)
    assert bounds.seconds == 20 + 64
    assert bounds.memory is not None
    assert bounds.memory > 6 << 30
