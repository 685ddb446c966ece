"""An event loop whose time passes at once while nothing is ready: hours of waits take moments, and no result depends on the machine."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Skipping(selectors.DefaultSelector):  # type: ignore[misc, valid-type, unused-ignore]
    """Skips the time that a loop would wait for."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(timeout if timeout is None else 0)
        if not ready and timeout is not None:
            self.skipped += timeout
        return ready


class VirtualTime(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.skipped


def run(scenario: Callable[[Callable[[], float]], Coroutine[Any, Any, T]]) -> T:
    """Run a scenario, which is given the clock, and return its result."""
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(scenario(runner.get_loop().time))
