"""How far a training run is: a bar on a terminal, a line now and then where the output goes to a file or a pipe."""

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

LINE_SECONDS = 30.0  # between two lines
_BAR_SECONDS = 1.0  # between two losses beside the bar

logger = logging.getLogger(__name__)


class Progress:
    """Shows step, epoch, loss, speed and the expected end; used in a `with` block.

    Args:
        max_steps: updates that the run has in all.
        step: updates that it has made before.
        is_shown: False for all but the first of several processes.
        is_terminal: whether somebody watches; None asks stderr.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        max_steps: int,
        step: int,
        *,
        is_shown: bool = True,
        is_terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_steps = max_steps
        self._step = step
        self._is_shown = is_shown
        self._clock = clock
        self._first: tuple[int, float] | None = None  # step and instant, after the first update, which is the slowest
        self._last_line = float("-inf")  # the first update is told at once
        self._losses: list[float] = []  # since the last line
        self._tokens, self._seconds = 0, 0.0  # likewise
        disable = None if is_terminal is None else not is_terminal
        bar_format = "{n_fmt}/{total_fmt} steps {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
        self._bar = tqdm(
            total=max_steps,
            initial=step,
            bar_format=bar_format,
            dynamic_ncols=True,
            disable=disable if is_shown else True,
        )
        self._redirected = logging_redirect_tqdm()

    def __enter__(self) -> Self:
        if not self._bar.disable:
            self._redirected.__enter__()  # or log lines would tear the bar
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._bar.disable:
            self._redirected.__exit__(kind, error, trace)
        self._bar.close()

    def update(self, epoch: int, loss: float, num_tokens: int, seconds: float) -> None:
        """Notes an update.

        Args:
            epoch: that it belongs to, from 0.
            loss: of it, in nats per target token.
            num_tokens: target tokens of it.
            seconds: that it took.
        """
        self._step += 1
        self._losses.append(loss)
        self._tokens += num_tokens
        self._seconds += seconds
        now = self._clock()
        is_due = now - self._last_line >= (LINE_SECONDS if self._bar.disable else _BAR_SECONDS)
        if is_due or self._step == self._max_steps:
            said = self._describe(epoch, now)
            self._losses, self._tokens, self._seconds, self._last_line = [], 0, 0.0, now
            self._bar.set_postfix_str(said, refresh=False)
            if self._bar.disable and self._is_shown:
                logger.info("step %d of %d, %s", self._step, self._max_steps, said)
        self._bar.update()

    def _describe(self, epoch: int, now: float) -> str:
        loss = sum(self._losses) / len(self._losses)
        said = f"epoch {epoch}: loss {loss:.3f}, {self._tokens / max(self._seconds, 1e-9):.0f} tokens/s"
        if self._first is None:
            self._first = self._step, now
            return said
        step, instant = self._first
        seconds_left = (now - instant) / (self._step - step) * (self._max_steps - self._step)
        end = time.localtime(time.time() + seconds_left)
        return f"{said}, ends at about {time.strftime('%H:%M' if seconds_left < 12 * 3600 else '%d %b, %H:%M', end)}"
