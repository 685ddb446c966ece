"""The pages of an application that a test makes, on a port, in a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from console.screens import SCREENS
from console.server.app import WorldSource, application
from tests.support.calls.server_process import until
from tests.support.console.asked import Somebody


@contextmanager
def served(source: WorldSource, visitor: Somebody) -> Iterator[str]:
    """The address of the console of ``source``, as ``visitor`` sees it, without a path."""
    with listening(lambda _base: application(source, visitor, SCREENS)) as base:
        yield base


@contextmanager
def listening(made: Callable[[str], Starlette]) -> Iterator[str]:
    """The address of an application, without a path; ``made`` makes it, given the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(made(base), ws="none", lifespan="off", interface="asgi3", log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        until(lambda: server.started, "the console to serve")
        yield base
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
