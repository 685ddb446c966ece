"""A sink that keeps what it is given, and reflectors that fill it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from cluster.client.api_client import Client
from cluster.watch.connectivity import Connectivity
from cluster.watch.kinds import Watched, key_of
from cluster.watch.reflector import Reflector
from kube.tree import Raw
from policies.state.objects import Key
from tests.testcluster.calls import PATIENCE


def run(work: Coroutine[Any, Any, None]) -> None:
    """On the event loop that ``berth serve`` uses."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def at_once(work: Coroutine[Any, Any, None]) -> int:
    """Run it to its end, and return how many turns of the event loop it left to others."""
    turns = 0
    with contextlib.suppress(StopIteration):
        while True:
            work.send(None)
            turns += 1
    return turns


class CollectingStore:
    """What a replica would know. ``logged``: the (event, fields) of each that was logged."""

    def __init__(self) -> None:
        self.objects: dict[Key, Raw] = {}
        self.logged: list[tuple[str, dict[str, Any]]] = []
        self.removed: list[Key] = []
        self.broken = 0
        """how many of the next calls raise"""

    async def replace(self, kind: str, objects: list[Raw]) -> None:
        self._break()
        self.objects = {key: value for key, value in self.objects.items() if key[0] != kind}
        self.objects |= {key_of(kind, value): value for value in objects}

    def put(self, kind: str, obj: Raw) -> None:
        self._break()
        self.objects[key_of(kind, obj)] = obj

    def remove(self, kind: str, obj: Raw) -> None:
        self._break()
        self.removed.append(key_of(kind, obj))
        self.objects.pop(key_of(kind, obj), None)

    def tell(self, event: str, /, **fields: Any) -> None:
        self.logged.append((event, fields))

    def named(self, kind: str) -> dict[str, Raw]:
        return {key[2]: value for key, value in self.objects.items() if key[0] == kind}

    def errors(self) -> list[str]:
        return [fields["error"] for event, fields in self.logged if event == "kind_failed"]

    def _break(self) -> None:
        if self.broken:
            self.broken -= 1
            raise KeyError("the sink is broken")


@asynccontextmanager
async def following(
    client: Client, kinds: Sequence[Watched], kept: CollectingStore, *, watch_seconds: float = 60.0
) -> AsyncIterator[tuple[list[Reflector], Connectivity]]:
    """Reflectors that run."""
    gate = Connectivity(client)
    reflectors = [Reflector(client, one, kept, gate, kept.tell, watch_seconds) for one in kinds]
    tasks = [asyncio.create_task(one.run()) for one in reflectors]
    try:
        yield reflectors, gate
        assert not [task for task in tasks if task.done()], "a reflector never ends"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(true: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Raises AssertionError where it never becomes true."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not true():
        assert loop.time() < deadline, f"waited {seconds:.0f} s for {what}"
        await asyncio.sleep(0.01)


def digest_of(objects: Iterable[Raw]) -> str:
    """Return the sum of the hashes of ``namespace/name@resourceVersion`` : the digest of a kind (``DeltaQueue.digest``)."""
    hashes = (hashlib.blake2b(_title(value["metadata"]).encode(), digest_size=8).digest() for value in objects)
    return f"{sum(map(int.from_bytes, hashes)) % 2**64:016x}"


def _title(metadata: Raw) -> str:
    return f"{metadata.get('namespace') or ''}/{metadata['name']}@{metadata['resourceVersion']}"
