"""Waiting until kwok plays nodes and pods.

kwok 0.8.0 keeps what it made of its Stages by the version of its last list (pkg/config/resources). Where it looks between the arrival of
the list and that of the objects, it keeps an empty one, and plays nothing until a Stage changes: nodes are never ready. So one is changed.
"""

from __future__ import annotations

from itertools import count

from tests.testcluster.controlplane.api import Api
from tests.testcluster.controlplane.processes import Process, Processes

STAGES = "kwok.x-k8s.io/v1alpha1"
PLAYED = 2
"""kinds: nodes and pods"""
TOUCHED = "tests.berth.dev/touched"


def wait_until_played(api: Api, processes: Processes, kwok: Process) -> None:
    """Returns once kwok has said of each kind that it plays it. Raises ClusterFailed."""
    numbers = count()

    def played() -> bool:
        if kwok.log.read_bytes()[kwok.begins :].count(b'"msg":"Start stage controller"') >= PLAYED:
            return True
        stage = {**api.list(STAGES, "Stage")[0], "apiVersion": STAGES, "kind": "Stage"}
        api.patch(stage, {"metadata": {"annotations": {TOUCHED: str(next(numbers))}}})
        return False

    processes.wait_for(played, f"kwok to play nodes and pods; its log is {kwok.log}")
