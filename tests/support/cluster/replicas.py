"""Replicas that follow one API server, asked directly: a review is posted over TLS again and again, and what they decide is read off
the grace period that they write.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.calls.server_process import JSON
from tests.support.counts import PROVE
from tests.testcluster.addons.berth import Berth
from tests.testcluster.calls import PATIENCE, answer_of

REVIEW = Path(__file__).parents[2] / "reviews" / "pods-create-train-llama.json"
GRACE = "/spec/terminationGracePeriodSeconds"
PAUSE = 0.003 if PROVE else 0.03
"""seconds between two questions: what is measured is that much too long at most"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answer. Times are of ``time.perf_counter``."""

    sent: float
    received: float
    status: int
    headers: Mapping[str, str]
    """names in lower case"""
    grace: int | None
    """seconds that the patch gives the pod; None where it doesn't touch them"""


def review(namespace: str) -> bytes:
    """Of a training pod of a Job that is created there."""
    value = json.loads(REVIEW.read_bytes())
    value["request"]["namespace"] = value["request"]["object"]["metadata"]["namespace"] = namespace
    return json.dumps(value).encode()


class Caller:
    """One kept connection to a replica."""

    def __init__(self, replica: Berth, namespace: str) -> None:
        host, _, port = replica.url.removeprefix("https://").rpartition(":")
        context = ssl.create_default_context(cafile=str(replica.ca))
        self._connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=PATIENCE)
        self._body = review(namespace)

    def ask(self, body: bytes | None = None) -> Answered:
        """What it says to a review, of the usual pod or another. Raises OSError and http.client.HTTPException where there is no answer."""
        sent = time.perf_counter()
        self._connection.request("POST", "/mutate?timeout=5s", body or self._body, JSON)
        got = answer_of(self._connection)
        received = time.perf_counter()
        grace = _grace(got.response) if got.status == 200 else None
        return Answered(sent=sent, received=received, status=got.status, headers=got.headers, grace=grace)

    def close(self) -> None:
        """The connection is closed."""
        self._connection.close()


class Asking(threading.Thread):
    """Asks one replica without end. What went wrong is raised by ``close``."""

    def __init__(self, replica: Berth, namespace: str) -> None:
        super().__init__(name=f"asking {replica.name}", daemon=True)
        self.answers: list[Answered] = []
        self._caller = Caller(replica, namespace)
        self._ended = threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        """See ``close``."""
        try:
            while not self._ended.wait(PAUSE):
                self.answers.append(self._caller.ask())
        except Exception as error:  # noqa: BLE001 - raised where the thread is joined
            self._error = error

    def close(self) -> None:
        """Ended. Raises what has ended it before."""
        self._ended.set()
        self.join()
        self._caller.close()
        if self._error is not None:
            raise self._error


@contextmanager
def asking(replicas: list[Berth], namespace: str) -> Iterator[list[Asking]]:
    """One thread for each replica; ended on leaving."""
    threads = [Asking(replica, namespace) for replica in replicas]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.close()


def _grace(response: Mapping[str, Any]) -> int | None:
    edits = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    found: list[int] = [edit["value"] for edit in edits if edit["path"] == GRACE]
    return found[0] if found else None
