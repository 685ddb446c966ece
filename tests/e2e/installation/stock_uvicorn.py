"""Run ``berth serve`` on Starlette and uvicorn as they come, as a script in place of ``berth`` (test_stock_uvicorn.py).

The same routes with the same handlers, in a task for each call, without the bounds of docs/protocol.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import sys
from collections.abc import Iterator
from typing import Any

import uvicorn

import webhook.serve
from cli.main import main
from server.limits import Limits


class Stock(uvicorn.Server):
    """In place of ``server.server.Server``."""

    def __init__(self, app: Any, context: ssl.SSLContext | None, limits: Limits, *_: object, **__: object) -> None:
        factory = None if context is None else lambda _config, _default: context
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level=logging.WARNING,
            timeout_keep_alive=limits.keep_alive,
            ssl_context_factory=factory,
        )
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are the process's."""
        yield

    async def start(self, listening: socket.socket) -> None:
        self._served = asyncio.create_task(self.serve([listening]))
        while not self.started:
            await asyncio.sleep(0.01)

    async def stop(self, seconds: float) -> None:
        self.config.timeout_graceful_shutdown = int(seconds)
        self.should_exit = True
        await self._served


if __name__ == "__main__":
    vars(webhook.serve)["Server"] = Stock
    sys.exit(main())
