"""What the bench sends: honest loads, the same ones each time."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from bench.harness.same_edits import patched
from bench.inputs import bodies
from policies.pods.projection import extract
from policies.state.snapshot import Snapshot
from sources.sources import Sources, load_sources
from telemetry.metrics import Metrics
from tests.testcluster.addons.berth import LIBRARY
from webhook.admission import handlers

SAMPLE = 30


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return load_sources(Sources(policies=(str(LIBRARY),), platforms=("karpenter-aws",))).snapshot


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the loads: each is written once."""
    return tmp_path_factory.mktemp("loads")


def sample(name: str, folder: Path) -> list[bytes]:
    """Some bodies of a load, as they are sent."""
    lines = bodies.written(name, folder).read_bytes().splitlines()
    return [bodies.with_number(line, number) for number, line in enumerate(lines[:: max(1, len(lines) // SAMPLE)])]


@pytest.mark.parametrize("name", ["burst", "mixed", "unlike", "spread", "unlike_spread"])
def test_nearly_every_pod_of_a_load_gets_affinity(name: str, folder: Path, snapshot: Snapshot) -> None:
    """No pod is denied, and the work that is measured is really done."""
    written = 0
    seen = sample(name, folder)
    for body in seen:
        pod = patched(body, handlers.handle_review("mutate", body, snapshot, Metrics("test"))[1])
        written += pod["spec"].get("affinity") != orjson.loads(body)["request"]["object"]["spec"].get("affinity")
    assert written >= 0.8 * len(seen)


def test_a_plain_pod_is_answered_as_it_came(folder: Path, snapshot: Snapshot) -> None:
    """The load plain measures a call that changes nothing."""
    for body in sample("plain", folder):
        assert b"patch" not in handlers.handle_review("mutate", body, snapshot, Metrics("test"))[1]


def test_no_two_unlike_calls_are_alike(folder: Path, snapshot: Snapshot) -> None:
    """In what a decision reads, even when the file begins anew."""
    lines = bodies.written("unlike", folder).read_bytes().splitlines()[:200]
    sent = [bodies.with_number(line, number) for number, line in enumerate([*lines, *lines])]
    extracts = {orjson.dumps(extract(orjson.loads(body)["request"]["object"], snapshot.reads)) for body in sent}
    assert len(extracts) == len(sent)


def test_a_burst_is_alike_but_for_names(folder: Path, snapshot: Snapshot) -> None:
    """One Job: what a decision reads is the same, the bodies differ."""
    (line,) = bodies.written("burst", folder).read_bytes().splitlines()
    sent = [bodies.with_number(line, number) for number in range(5)]
    assert len(set(sent)) == 5
    assert len({orjson.dumps(extract(orjson.loads(body)["request"]["object"], snapshot.reads)) for body in sent}) == 1


def test_mixed_has_sixty_workloads_in_twenty_namespaces(folder: Path) -> None:
    """Of a thousand pods; and every uid is a call's own."""
    reviews = [orjson.loads(line)["request"] for line in bodies.written("mixed", folder).read_bytes().splitlines()]
    assert len(reviews) == bodies.PODS
    assert len({review["object"]["metadata"]["ownerReferences"][0]["uid"] for review in reviews}) == bodies.WORKLOADS
    assert 15 <= len({review["namespace"] for review in reviews}) <= 20
    assert all(review["uid"].endswith(bodies.MARK) for review in reviews)


def test_bodies_are_the_same_each_time(folder: Path, tmp_path: Path) -> None:
    """Two machines measure the same."""
    assert bodies.written("mixed", folder).read_bytes() == bodies.written("mixed", tmp_path).read_bytes()


def test_the_giant_has_three_mebibytes(folder: Path) -> None:
    """As much as an API server takes, and no more."""
    assert 0.97 * bodies.GIANT < bodies.written("giant", folder).stat().st_size <= bodies.GIANT


@pytest.mark.parametrize("load", ["job", "unlike", "mixed"])
def test_pods_are_sent_as_a_controller_sends_them(load: str, folder: Path) -> None:
    """They lack what the API server adds, and finalizers, which nobody would take off; they ask for GPUs."""
    lines = bodies.written(f"{load}.pods", folder).read_bytes().splitlines()
    pods = [orjson.loads(line) for line in lines]
    assert len(pods) == (1000 if load == "mixed" else 1)
    for pod in pods:
        assert {"uid", "namespace", "managedFields", "finalizers", "name"} & pod["metadata"].keys() == set()
        assert pod["metadata"]["generateName"]
        assert pod["metadata"]["ownerReferences"]
    assert all(b"nvidia.com/gpu" in line for line in lines)


def test_bare_pods_have_no_owner(folder: Path) -> None:
    """A garbage collector would delete them."""
    pods = [orjson.loads(line) for line in bodies.written("mixed.bare", folder).read_bytes().splitlines()]
    assert [pod for pod in pods if "ownerReferences" in pod["metadata"]] == []
