"""How many sentences of a bulk call may be under way."""

import asyncio

from server.translation.bulk_window import BulkWindow


async def test_a_call_begins_with_one_sentence() -> None:
    window = BulkWindow()
    await window.wait_for_room()  # at once

    with window.hold(1):
        waiting = asyncio.create_task(window.wait_for_room())
        await asyncio.sleep(0)
        assert not waiting.done()

    await waiting


async def test_room_comes_only_with_the_last_sentence_that_is_too_many() -> None:
    window = BulkWindow()

    with window.hold(1):
        with window.hold(2):
            waiting = asyncio.create_task(window.wait_for_room())
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()

    await waiting
