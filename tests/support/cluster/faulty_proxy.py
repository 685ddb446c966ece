"""A TCP proxy that does to connections what networks do: cuts them, swallows what they carry, delays it, denies new ones.

Runs on threads of its own, so tests of any form can use it::

    with Proxy("127.0.0.1", port) as proxy:
        proxy.blackhole()
"""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import struct
import threading
import time
from types import TracebackType
from typing import Self

CHUNK = 1 << 16
LOOK = 0.02
"""seconds between two looks at what was asked for meanwhile"""


class Proxy:
    """Listens on ``port`` of the loopback address. ``connections``: when each was accepted, or tried in vain, of ``time.monotonic``."""

    def __init__(self, host: str, port: int) -> None:
        self._targets = itertools.cycle([(host, port)])
        self._listener: socket.socket | None = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.connections: list[float] = []
        self._delay = 0.0
        self._swallows = False
        self._denies = False
        self._pairs: list[_Pair] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        self.cut()
        assert self._listener is not None
        self._listener.close()

    def lead_to(self, *targets: tuple[str, int]) -> None:
        """New connections go to these in turn, as those to a Service go to its endpoints; open ones stay where they are."""
        with self._lock:
            self._targets = itertools.cycle(targets)

    def cut(self) -> int:
        """Every connection is reset. How many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.reset()
        return len(pairs)

    def blackhole(self, *, on: bool = True) -> None:
        """Connections stay, and new ones are accepted, and nothing that is sent arrives. What was swallowed is lost: after
        ``blackhole(False)`` the connections of before are reset, as a firewall that has forgotten them does."""
        self._swallows = on
        if not on:
            self.cut()

    def deny(self, *, on: bool = True) -> None:
        """New connections are reset at once, and are counted."""
        self._denies = on

    def delay(self, seconds: float) -> None:
        """What the server says comes later by this."""
        self._delay = seconds

    def _accept(self) -> None:
        assert self._listener is not None
        self._listener.settimeout(LOOK)
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            self.connections.append(time.monotonic())
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = None
        if not self._denies:
            with self._lock:
                target = next(self._targets)
            with contextlib.suppress(OSError):
                server = socket.create_connection(target, timeout=5)
        if server is None:
            _reset(client)
            return
        pair = _Pair(client, server)
        with self._lock:
            self._pairs.append(pair)
        try:
            self._carry(pair)
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._pairs.remove(pair)
            pair.close()

    def _carry(self, pair: _Pair) -> None:
        """Until one side closes."""
        with selectors.DefaultSelector() as selector, contextlib.suppress(OSError, ValueError):
            selector.register(pair.client, selectors.EVENT_READ, pair.server)
            selector.register(pair.server, selectors.EVENT_READ, pair.client)
            while not self._ended.is_set() and not pair.ended:
                for key, _ in selector.select(LOOK):
                    assert isinstance(key.fileobj, socket.socket)
                    if not self._pass_on(key.fileobj, key.data, later=key.fileobj is pair.server):
                        return

    def _pass_on(self, source: socket.socket, target: socket.socket, *, later: bool) -> bool:
        """Whether there will be more."""
        part = source.recv(CHUNK)
        if not part:
            return self._swallows and not self._ended.wait(LOOK)  # a blackhole swallows farewells too, until it ends
        if not self._swallows:
            if later and self._delay:
                self._ended.wait(self._delay)
            target.sendall(part)
        return True


class _Pair:
    """Both ends of one connection."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server, self.ended = client, server, False

    def reset(self) -> None:
        self.ended = True
        for one in (self.client, self.server):
            _reset(one)

    def close(self) -> None:
        self.ended = True
        for one in (self.client, self.server):
            with contextlib.suppress(OSError):
                one.close()


def _reset(one: socket.socket) -> None:
    """RST instead of FIN: SO_LINGER of no time."""
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        one.close()
