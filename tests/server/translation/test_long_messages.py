import asyncio

from server.translation.long_messages import LIGHT_BYTES, LongMessages

MIB = 1 << 20


async def seconds_of(*sizes: int) -> float:
    loop = asyncio.get_running_loop()
    turns = LongMessages()
    started = loop.time()
    async with asyncio.timeout(20):
        await asyncio.gather(*map(turns.wait_to_parse, sizes))
    return loop.time() - started


async def test_long_messages_are_parsed_one_after_the_other() -> None:
    assert await seconds_of(4 * MIB, 4 * MIB, MIB) > 8 / 33  # of 32 MiB a second, the first two


async def test_short_ones_wait_for_nobody() -> None:
    turns = LongMessages()
    await turns.wait_to_parse(8 * MIB)
    long = asyncio.create_task(turns.wait_to_parse(MIB))
    await asyncio.sleep(0)

    for _ in range(1000):
        await turns.wait_to_parse(LIGHT_BYTES)

    assert not long.done()
    long.cancel()
