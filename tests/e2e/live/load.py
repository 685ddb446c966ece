"""A load on a replica that is not ready: pods created through the API server, and reviews posted past it, without end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.cluster.replicas import Asking
from tests.support.counts import PROVE
from tests.testcluster.addons.berth import PROBE, Berth
from tests.testcluster.controlplane.api import Api, Raw, Reply

WRITERS, ASKERS = 4, 2
PAUSE = 0.0 if PROVE else 0.1
"""seconds between two creations of a writer"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """One attempt. ``answered``: of ``time.perf_counter``."""

    answered: float
    reply: Reply


@dataclass(slots=True)
class Load:
    """Everything that was answered so far."""

    creations: list[Creation] = field(default_factory=list)
    asked: Sequence[Asking] = ()

    def stored(self) -> list[Creation]:
        """Pods that the API server has taken."""
        return [one for one in self.creations if one.reply.ok]


class Writing(threading.Thread):
    """Creates GPU pods, one after the other."""

    def __init__(self, api: Api, namespace: str, into: list[Creation]) -> None:
        super().__init__(daemon=True)
        self._api, self._namespace, self._into = api, namespace, into
        self.ended = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Until ``ended``; what went wrong is kept."""
        pod: Raw = {**PROBE, "metadata": {"generateName": "p-"}}
        try:
            while not self.ended.wait(PAUSE):
                reply = self._api.try_create(pod, self._namespace)
                self._into.append(Creation(answered=time.perf_counter(), reply=reply))
        except Exception as error:  # noqa: BLE001 - raised where the load ends
            self.error = error


@contextmanager
def under_load(api: Api, replica: Berth, namespace: str) -> Iterator[Load]:
    """Within the block; what went wrong in it is raised at its end."""
    load = Load(asked=[Asking(replica, namespace) for _ in range(ASKERS)])
    writers = [Writing(api, namespace, load.creations) for _ in range(WRITERS)]
    for thread in (*load.asked, *writers):
        thread.start()
    try:
        yield load
    finally:
        for writer in writers:
            writer.ended.set()
        for writer in writers:
            writer.join()
        for asked in load.asked:
            asked.close()
    if errors := [writer.error for writer in writers if writer.error is not None]:
        raise errors[0]
