"""What every process of Berth does alike: its log on standard error, its signals, one line for each reason why it cannot
start."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

from cluster.background import TASK
from telemetry import log

BAD_INPUT = 2
_SWITCH = 0.0005
"""Seconds after which a thread that works yields to the event loop.

A call waits for that up to four times; with Python's default of 5 ms it took up to 22 ms longer.
"""


def cannot_start(reasons: str) -> int:
    """Print the reasons, a line each, and return the exit code."""
    for line in reasons.splitlines():
        print(line if line.startswith("berth: ") else f"berth: {line}", file=sys.stderr)
    return BAD_INPUT


def yield_often() -> None:
    """Have threads that work, such as one that compiles policies, leave the interpreter to calls soon."""
    sys.setswitchinterval(_SWITCH)


@contextlib.contextmanager
def logging(loop: asyncio.AbstractEventLoop, on_drop: Callable[[], None]) -> Iterator[None]:
    """Set up logging such that no log line delays a call, wherever standard error leads. ``on_drop`` is called for a
    line that nobody took in time."""
    log.take_from_libraries()
    if sys.stderr is None:
        yield
        return
    stream = log.LogWriter(sys.stderr.fileno(), loop, on_drop, _tell_loss)
    log.to(stream.write)
    try:
        yield
    finally:
        stream.close()


def _tell_loss(lines: int) -> None:
    log.write("log_dropped", "error", lines=lines)


class Background:
    """Ends the process when a background task ends by itself (``cluster.background``), as at SIGTERM but with exit code 1."""

    def __init__(self, stop: asyncio.Event) -> None:
        """Watch all tasks of the running event loop. ``stop``: set when one has ended."""
        self.code = 0
        self._stop = stop
        asyncio.get_running_loop().set_exception_handler(self._handle)

    def _handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        name, error = context.get(TASK), context.get("exception")
        if name is None:
            loop.default_exception_handler(context)
            return
        log.write("task_ended", "error", task=name, error=log.trace(error) if isinstance(error, Exception) else repr(error))
        self.code = 1
        self._stop.set()


def bound(listener: socket.socket) -> str:
    """Return the bound address: unlike a URL, ``0.0.0.0:8443`` shows whether others can reach it."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def on_signals(stop: asyncio.Event, at_once: asyncio.Event) -> None:
    """Install the signal handlers.

    SIGTERM stops the server after the lame-duck period, a second one or Ctrl-C at once; calls in flight are
    answered either way.
    """

    def terminate() -> None:
        (at_once if stop.is_set() else stop).set()

    def interrupt() -> None:
        at_once.set()
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, terminate)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    if sys.stdin is None or not sys.stdin.isatty():  # a terminal that is closed ends what runs in it
        loop.add_signal_handler(
            signal.SIGHUP, lambda: log.write("reload", text="nothing to do: changed policies and certificates are read automatically")
        )
