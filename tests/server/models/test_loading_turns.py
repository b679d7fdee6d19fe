import asyncio

import pytest

from server.errors import NotServing
from server.models.loading_turns import LoadingTurns


async def all_are_good(_: str) -> None:
    """Proves nothing."""


async def test_a_model_is_loaded_once_and_taken_by_all_who_wait_before_the_next_begins() -> None:
    events: list[str] = []

    async def load(name: str) -> None:
        events.append(f"load {name}")
        await asyncio.sleep(0)
        if name == "broken":
            raise NotServing("it is broken")

    turns = LoadingTurns(all_are_good, load)

    async def use(name: str) -> None:
        await turns.wait_for(name)
        events.append(f"use {name}")

    results = await asyncio.gather(*map(use, ("a", "b", "broken", "a", "b")), return_exceptions=True)

    assert events == ["load a", "use a", "use a", "load b", "use b", "use b", "load broken"]
    assert [type(result) for result in results if result is not None] == [NotServing]
    with pytest.raises(NotServing):
        await turns.wait_for("broken")
    assert events[-1] == "load broken"


async def test_whoever_leaves_does_not_end_it_for_others() -> None:
    may_end = asyncio.Event()

    async def load(name: str) -> None:
        await may_end.wait()

    turns = LoadingTurns(all_are_good, load)
    first, second = (asyncio.create_task(turns.wait_for("a")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    may_end.set()

    await second
    assert first.cancelled()
