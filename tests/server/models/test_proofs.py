"""Which bundle is proved next, with proofs that end when the test lets them; no process is started."""

import asyncio
from pathlib import Path

import pytest

from server.children import Bounds
from server.models.folder import FoundBundle
from server.models.proof import Unproved
from server.models.proofs import Finding, Proofs, Task, newest
from tests.fakes import FakeClock
from tests.server.models.administered import until


def task(name: str, came: int = 0) -> Task:
    directory = Path("models", name)
    stamp = ((f"{directory}/manifest.json", 1, 2, 3, came), (f"{directory}/weights.bin", 1, 2, 3, 0))
    return Task(FoundBundle(name, "", directory, stamp), "cpu-fp32", Bounds(20, None))


class Prover:
    """Stands in for processes: notes what is begun and ended, and ends proofs as it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.killed: list[str] = []
        self.ends: dict[str, asyncio.Future[list[str]]] = {}

    async def __call__(self, directory: Path, variant: str, bounds: Bounds) -> list[str]:
        self.begun.append(directory.name)
        self.ends[directory.name] = asyncio.get_running_loop().create_future()
        try:
            return await self.ends[directory.name]
        except asyncio.CancelledError:
            self.killed.append(directory.name)
            raise

    def end(self, name: str, *faults: str) -> None:
        self.ends[name].set_result(list(faults))


async def test_what_has_come_last_is_proved_first_and_its_faults_are_known_then() -> None:
    prover = Prover()
    proofs = Proofs(prover)
    old, new = task("old", came=1), task("new", came=2)

    proofs.want([old, new])
    await until(lambda: prover.begun == ["new"])
    assert proofs.found(new.bundle) is None
    prover.end("new", "is bad")
    await until(lambda: prover.begun == ["new", "old"])
    prover.end("old")
    await until(lambda: proofs.found(old.bundle) == Finding([]))

    assert proofs.found(new.bundle) == Finding(["is bad"])
    assert proofs.found(task("other").bundle) is None
    assert proofs.news.is_set()
    assert prover.killed == []
    assert newest(new.bundle) == 2


async def test_a_long_proof_gives_way_to_what_was_never_tried_and_is_tried_again() -> None:
    prover, clock = Prover(), FakeClock()
    proofs = Proofs(prover, clock)
    endless, other, good = task("endless", 1), task("other", 2), task("good", 3)

    proofs.want([endless])
    await until(lambda: prover.begun == ["endless"])
    clock.now += 100
    await asyncio.sleep(0.1)
    assert prover.killed == []  # nobody waits
    proofs.want([endless, other])
    await until(lambda: prover.begun == ["endless", "other"])
    proofs.want([endless, other, good])
    await asyncio.sleep(0.1)
    assert prover.killed == ["endless"]  # the other has its turn yet
    clock.now += 2
    await until(lambda: prover.begun[2:] == ["good"])
    prover.end("good")
    await until(lambda: prover.begun[3:] == ["other"])  # again; it has come later
    clock.now += 100
    await asyncio.sleep(0.1)
    assert prover.killed == ["endless", "other"]  # the endless one was tried, so it waits for the other's deadline
    prover.end("other", "too late")
    await until(lambda: prover.begun[4:] == ["endless"])
    prover.end("endless", "too late")

    await until(lambda: proofs.found(endless.bundle) == Finding(["too late"]))


async def test_what_nobody_wants_any_more_is_given_up() -> None:
    prover = Prover()
    proofs = Proofs(prover)
    gone = task("gone")

    proofs.want([gone])
    await until(lambda: prover.begun == ["gone"])
    proofs.want([])

    await until(lambda: prover.killed == ["gone"])
    assert proofs.found(gone.bundle) is None


async def test_who_waits_for_a_proof_has_it_done_though_the_folder_wants_others() -> None:
    prover = Prover()
    proofs = Proofs(prover)
    asked = task("asked")

    waiting = asyncio.create_task(proofs.wait_for(asked))
    await until(lambda: prover.begun == ["asked"])
    proofs.want([])
    prover.end("asked", "is bad")

    await waiting
    assert proofs.found(asked.bundle) == Finding(["is bad"])


async def test_a_fault_of_ours_refuses_the_bundle_and_the_next_is_proved() -> None:
    begun: list[str] = []

    async def fail_first(directory: Path, variant: str, bounds: Bounds) -> list[str]:
        begun.append(directory.name)
        if len(begun) == 1:
            raise RuntimeError("no idea")
        return []

    proofs = Proofs(fail_first)
    first, second = task("first", came=2), task("second", came=1)

    proofs.want([first, second])
    await until(lambda: proofs.found(second.bundle) == Finding([]))

    fault = f"{first.bundle.directory}: proving it failed: RuntimeError"
    assert proofs.found(first.bundle) == Finding([fault], is_sure=False)


async def test_a_proof_that_was_killed_says_nothing_sure_and_is_forgotten_when_it_is_told() -> None:
    async def be_killed(*_: object) -> list[str]:
        raise Unproved(["it was ended by SIGKILL"])

    proofs, killed = Proofs(be_killed), task("killed")
    await proofs.wait_for(killed)

    assert proofs.found(killed.bundle) == Finding(["it was ended by SIGKILL"], is_sure=False)
    proofs.forget(killed.bundle)
    assert proofs.found(killed.bundle) is None


async def test_who_has_waited_leaves_what_is_wanted_since(monkeypatch: pytest.MonkeyPatch) -> None:
    prover = Prover()
    proofs = Proofs(prover)
    again = task("again")

    waiting = asyncio.create_task(proofs.wait_for(again))
    await until(lambda: prover.begun == ["again"])
    with monkeypatch.context() as patched:
        patched.setattr(proofs.news, "set", lambda: proofs.want([again]))  # before who waits goes on
        prover.end("again")
        await waiting

    await until(lambda: prover.begun == ["again"] * 2)
    prover.end("again", "is bad")
    await until(lambda: proofs.found(again.bundle) == Finding(["is bad"]))
