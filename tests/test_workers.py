"""Tests of the scheduler: each file runs once, whichever workers give way or crash."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import FilesAndCluster

SERVERS = [f"tests/{folder}/test_{letter}.py" for folder in ("e2e/rules", "e2e/kubelets", "e2e/faults", "deploy") for letter in "ab"]
OTHERS = [f"tests/policies/test_{letter}.py" for letter in "abcdef"]
TESTS = [f"{file}::test_{number}" for file in (*SERVERS, *OTHERS) for number in range(3)]


class Worker:
    """A worker that runs nothing and keeps the indices that it is sent."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.waiting: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.waiting += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduled(workers: int, tests: list[str]) -> tuple[Any, list[Worker]]:
    """Return the scheduler of a run that has just started, and its workers."""
    config = SimpleNamespace(getvalue=lambda name: [f"{workers}*popen"], option=SimpleNamespace(loadscopereorder=False))
    scheduler = FilesAndCluster(config, SimpleNamespace(loadscopesched=lambda *said: None, loadfilesched=lambda *said: None))
    nodes = [Worker(number) for number in range(workers)]
    for node in nodes:
        join(scheduler, node, tests)
    scheduler.schedule()
    return scheduler, nodes


def join(scheduler: Any, node: Worker, tests: list[str]) -> None:
    scheduler.add_node(node)
    scheduler.add_node_collection(node, tests)


@pytest.mark.parametrize("tests", [TESTS, [test for test in TESTS if test.startswith(tuple(SERVERS))]], ids=["all", "servers alone"])
@pytest.mark.parametrize("workers", [1, 3, 6, 8])
@pytest.mark.parametrize("crashes", [0, 1, 3])
def test_every_test_is_run(tests: list[str], workers: int, crashes: int) -> None:
    """Every test runs once, or again if its worker crashed; in the end nothing is pending and every worker is shut down."""
    for seed in range(20):
        random = Random(seed)
        scheduler, nodes = scheduled(workers, tests)
        done, left = list[int](), crashes
        while running := [node for node in nodes if node.waiting]:
            node = random.choice(running)
            if left and random.random() < 0.1:
                left -= 1
                nodes.remove(node)
                scheduler.remove_node(node)
                nodes.append(Worker(workers + crashes - left))
                join(scheduler, nodes[-1], tests)
                scheduler.schedule()
            else:
                done.append(node.waiting.pop(0))
                scheduler.mark_test_complete(node, done[-1])
        assert set(done) == set(range(len(tests))), seed
        assert crashes or len(done) == len(tests)
        assert not scheduler.has_pending
        assert all(node.shutting_down for node in nodes)
