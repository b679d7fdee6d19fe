"""Has long messages parsed one after the other, with pauses for everything short: parsing keeps the event loop busy."""

import asyncio
import math
import time

LIGHT_BYTES = 16 << 10  # a shorter message does not count
_LONG_RATE = 32 << 20  # bytes a second of all messages that count: at most a quarter of the loop's time


class LongMessages:
    """The turns of long messages, of all fronts together; on the event loop's thread."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._next = -math.inf  # instant from which a long message may be parsed

    async def wait_to_parse(self, num_bytes: int) -> None:
        """Waits until a message of so many bytes may be parsed: a short one at once, long ones one after the other."""
        if num_bytes > LIGHT_BYTES:
            async with self._turn:
                await asyncio.sleep(self._next - time.monotonic())
                self._next = time.monotonic() + num_bytes / _LONG_RATE
