"""A load while things break: GPU pods created through the API server, as far as there is one, and reviews posted straight to a replica.

What is wrong is kept in words; a test ends by ``Load.wrong == []``.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle

from tests.e2e.faults.marks import FREE, MOST_GPUS, OWN, PLAIN, RULED, Marks, gpu_pod
from tests.support.calls.server_process import JSON
from tests.support.counts import PROVE
from tests.testcluster.addons.berth import Berth
from tests.testcluster.calls import PATIENCE, answer_of
from tests.testcluster.controlplane.api import Api, Raw

GRACE = "/spec/terminationGracePeriodSeconds"
NAMESPACES = (RULED, OWN, FREE)
TOO_MANY = 2 * MOST_GPUS
PODS = tuple((namespace, gpus) for gpus in (1, 2, MOST_GPUS, TOO_MANY) for namespace in NAMESPACES)
CREATES, ASKS = (0.02, 0.01) if PROVE else (0.15, 0.1)
"""seconds between two of a thread: enough that something is always under way, and little enough that two cores do other things"""
AWAY = 0.05
"""seconds before an API server that can't be reached is tried again"""


@dataclass(slots=True)
class Load:
    """What became of it so far."""

    marks: Marks
    created: Counter[str] = field(default_factory=Counter)
    """attempts through the API server: stored, denied by a policy, or failed"""
    asked: Counter[str] = field(default_factory=Counter)
    """reviews posted to the replica, by what came of them"""
    wrong: list[str] = field(default_factory=list)
    replies: Counter[str] = field(default_factory=Counter)
    """the API server's words for what failed"""

    def judge(self, where: str, namespace: str, gpus: int, mark: int | None, since: Mapping[str, int]) -> None:
        """``mark``: of a pod that is admitted; None for one that is denied."""
        if (mark is None) is not (gpus > MOST_GPUS):
            self.wrong.append(f"{where}: {gpus} GPUs in {namespace} {'denied' if mark is None else f'admitted with {mark}'}")
        elif mark is not None and not self.marks.right(namespace, mark, since):
            acted = self.marks.history[namespace][since[namespace] :]
            self.wrong.append(f"{where}: {mark} in {namespace}, where {acted} acted")


class _Turning(threading.Thread):
    """Does the same again and again until ``ended``; what went wrong is kept."""

    def __init__(self, load: Load, pause: float) -> None:
        super().__init__(daemon=True)
        self.load = load
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self._pause = pause

    def run(self) -> None:
        """See ``turn``."""
        try:
            for namespace, gpus in cycle(PODS):
                self.turn(namespace, gpus)
                if self.ended.wait(self._pause):
                    return
        except Exception as error:  # noqa: BLE001 - raised where the load ends
            self.error = error

    def turn(self, namespace: str, gpus: int) -> None:
        raise NotImplementedError


class Creating(_Turning):
    """Pods through the API server; where it can't be reached, or can't store, that is no fault."""

    def __init__(self, load: Load, api: Api) -> None:
        super().__init__(load, CREATES)
        self._api = api

    def turn(self, namespace: str, gpus: int) -> None:
        since = self.load.marks.since()
        try:
            reply = self._api.call("POST", f"/api/v1/namespaces/{namespace}/pods", gpu_pod(gpus))
        except (OSError, http.client.HTTPException):
            self.load.created["no answer"] += 1
            self.ended.wait(AWAY)
            return
        if reply.ok:
            self.load.created["stored"] += 1
            self.load.judge("stored", namespace, gpus, reply.body["spec"]["terminationGracePeriodSeconds"], since)
        elif "denied the request" in reply.message:
            self.load.created["denied"] += 1
            self.load.judge("through the API server", namespace, gpus, None, since)
        else:
            self.load.created["failed"] += 1
            self.load.replies[f"{reply.status} {reply.message[:160]}"] += 1


class Asking(_Turning):
    """Reviews to the replica itself, on one connection: it must answer whatever becomes of the API server."""

    def __init__(self, load: Load, replica: Berth) -> None:
        super().__init__(load, ASKS)
        self._questions = Questions(replica)

    def turn(self, namespace: str, gpus: int) -> None:
        since = self.load.marks.since()
        status, mark = self._questions.ask(namespace, gpus)
        self.load.asked[str(status)] += 1
        if status != 200:
            self.load.wrong.append(f"replica: {status} for a review of {namespace}")
            return
        self.load.judge("replica", namespace, gpus, mark, since)

    def run(self) -> None:
        """Until ``ended``."""
        super().run()
        self._questions.close()


class Questions:
    """One kept connection to a replica."""

    def __init__(self, replica: Berth) -> None:
        host, _, port = replica.url.removeprefix("https://").rpartition(":")
        context = ssl.create_default_context(cafile=str(replica.ca))
        self._connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=PATIENCE)

    def ask(self, namespace: str, gpus: int = 1) -> tuple[int, int | None]:
        """(status, the mark that a pod gets, or None where it is denied). Raises OSError where there is no answer."""
        response, status = self.asked(review(namespace, gpu_pod(gpus)))
        if status != 200 or not response["allowed"]:
            return status, None
        edits = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        marks = [edit["value"] for edit in edits if edit["path"] == GRACE]
        return status, marks[0] if marks else PLAIN

    def asked(self, body: bytes) -> tuple[Raw, int]:
        """(response of the review, status)"""
        self._connection.request("POST", "/mutate?timeout=5s", body, JSON)
        got = answer_of(self._connection)
        return (got.response if got.status == 200 else {}), got.status

    def close(self) -> None:
        """The connection is closed."""
        self._connection.close()


def review(namespace: str, pod: Raw) -> bytes:
    """Of a pod that is created there, as the API server sends it: with the defaults in."""
    stored = {**pod, "spec": {"terminationGracePeriodSeconds": PLAIN, "restartPolicy": "Always", **pod["spec"]}}
    for container in stored["spec"]["containers"]:
        container["resources"] = {"requests": dict(container["resources"]["limits"]), **container["resources"]}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": namespace,
        "userInfo": {"username": "anna"},
        "object": {**stored, "metadata": {**pod["metadata"], "namespace": namespace}},
        "oldObject": None,
        "dryRun": False,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


@contextmanager
def under_load(api: Api, replica: Berth, marks: Marks, creators: int = 2) -> Iterator[Load]:
    """Within the block; what went wrong with its threads is raised at its end."""
    load = Load(marks)
    threads: list[_Turning] = [Asking(load, replica), *(Creating(load, api) for _ in range(creators))]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        for thread in threads:
            thread.ended.set()
        for thread in threads:
            thread.join()
    for thread in threads:
        if thread.error is not None:
            raise thread.error


def sweep(api: Api, load: Load, since: Mapping[str, int]) -> int:
    """Every pod that is stored, also those whose creation got no answer, judged and deleted; how many there were."""
    found = 0
    for namespace in NAMESPACES:
        reply = api.call("DELETE", f"/api/v1/namespaces/{namespace}/pods", gracePeriodSeconds="0")
        assert reply.ok, reply.message
        for pod in reply.body["items"]:
            found += 1
            gpus = int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
            load.judge("in the store", namespace, gpus, pod["spec"]["terminationGracePeriodSeconds"], since)
    return found
