"""GPU pods that arrive at a fixed rate, whatever becomes of those before, and what the API server said of each.

They are dry runs: they take the same way through admission, and leave the store as it is. A caller that is still waiting takes no
other pod, so a webhook that is slow makes arrivals late and is seen in ``Arrivals.late``; none is left out.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from tests.testcluster.controlplane.api import Api, Raw

CALLERS = 48
"""pods under way at once: half a second of them"""
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One pod. ``at`` and ``due`` are of ``time.monotonic``."""

    due: float
    at: float
    seconds: float
    status: int
    message: str
    policied: bool
    """True if what policies add is in the pod that the API server returned"""

    @property
    def failed(self) -> str:
        """Why it was not created; "" if it was."""
        return "" if self.status < 400 else f"{self.status} {self.message[:300]}"


@dataclass(slots=True)
class Arrivals:
    """All of a load so far."""

    made: list[Arrival] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    """of the load itself"""

    def failed(self) -> list[str]:
        return [one.failed for one in self.made if one.failed]

    def unpoliced(self) -> int:
        """Pods that were created without what policies add."""
        return sum(not one.policied for one in self.made if not one.failed)

    def quiet(self) -> float:
        """Seconds for which none has failed."""
        return time.monotonic() - max((one.at + one.seconds for one in self.made if one.failed), default=self.made[0].due)

    def late(self) -> float:
        """Seconds by which the latest arrival was late."""
        return max((one.at - one.due for one in self.made), default=0.0)

    def served(self, part: float) -> float:
        """Seconds within which this part of the pods was answered that were created."""
        ordered = sorted(one.seconds for one in self.made if not one.failed)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0

    def __str__(self) -> str:
        took = self.made[-1].at - self.made[0].due if self.made else 0.0
        return (
            f"{len(self.made)} pods in {took:.0f} s ({len(self.made) / max(took, 0.001):.0f}/s), failed {len(self.failed())}, "
            f"unpoliced {self.unpoliced()}, p50 {self.served(0.5) * 1000:.0f} ms, p99 {self.served(0.99) * 1000:.0f} ms, "
            f"longest {self.served(1.0) * 1000:.0f} ms, latest arrival {self.late() * 1000:.0f} ms late"
        )


@contextmanager
def arriving(api: Api, namespace: str, rate: float, callers: int = CALLERS) -> Iterator[Arrivals]:
    """Until the end of the block, whose last pods are waited for. An error of the load itself is raised then."""
    load, ended, begun, numbers = Arrivals(), threading.Event(), time.monotonic(), count()
    threads = [
        threading.Thread(target=_call, args=(api, namespace, rate, begun, numbers, load, ended), daemon=True) for _ in range(callers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    if load.errors:
        raise load.errors[0]


def _call(api: Api, namespace: str, rate: float, begun: float, numbers: count[int], load: Arrivals, ended: threading.Event) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    try:
        while True:
            due = begun + next(numbers) / rate
            if ended.wait(max(0.0, due - time.monotonic())):
                return
            at = time.monotonic()
            try:
                reply = api.call("POST", path, gpu_pod(), dryRun="All")
                status, message, policied = reply.status, reply.message, is_policied(reply.body)
            except (OSError, http.client.HTTPException) as error:
                status, message, policied = 599, f"no answer of the API server: {error!r}", False
            load.made.append(Arrival(due=due, at=at, seconds=time.monotonic() - at, status=status, message=message, policied=policied))
    except BaseException as error:  # noqa: BLE001 - raised where the load ends
        load.errors.append(error)


def gpu_pod() -> Raw:
    """One that asks for a GPU."""
    container: Raw = {"name": "c", "image": "none.invalid/train:1", "resources": {"limits": {GPU: "1"}}}
    metadata = {"generateName": "arrival-"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}


def is_policied(pod: Raw) -> bool:
    """Whether what policies add is in it: berth-default tolerates the taint of GPU nodes."""
    return any(one.get("key") == GPU for one in pod.get("spec", {}).get("tolerations", ()))
