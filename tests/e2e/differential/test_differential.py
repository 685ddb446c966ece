"""Generated pods through a real API server and kube-scheduler, with and without Berth: what differs is what a policy asks for.

``differential_laws`` says what that means, ``differential_run`` how each pod is tried, ``differential_worlds`` and
``differential_defaults`` under which policies, ``differential_nodes`` on which nodes. There is no kubelet: a pod is bound, and waits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.differential import nodes
from tests.e2e.differential.default_worlds import WORLDS
from tests.e2e.differential.forms import marks
from tests.e2e.differential.laws import Observed
from tests.e2e.differential.offline import TryResult, tried
from tests.e2e.differential.run import PLAIN, Run, run
from tests.e2e.differential.table import Table
from tests.support.counts import count
from tests.testcluster.addons.berth import LIBRARY, SCOPE, create_namespace, registered
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

BERTHS = tuple(dict.fromkeys(world.berth for world in WORLDS))


@pytest.fixture(scope="module")
def alone(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster in which owners may be invented and nodes stay as they were made: but for kube-scheduler nothing acts on pods or nodes."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as started:
        yield started


def test_only_what_policies_ask_for_differs(alone: Cluster, tmp_path: Path) -> None:
    """No generated pod breaks one of the laws, and of each law a fair share of the pods tells."""
    table = Table(judged(alone, tmp_path, range(count(100, 2000))))
    print(table)
    assert not (failures := table.failures()), "\n".join([*failures, f"facts: {tmp_path / 'facts.json'}"])
    assert table.hollow() == []


def judged(cluster: Cluster, folder: Path, numbers: Sequence[int]) -> list[Observed]:
    """The pods of these numbers, on the cluster and by berth try."""
    facts = folder / "facts.json"
    facts.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*_namespaces(cluster), *nodes.add(cluster, marks())]}))
    options = {berth: ["--platforms", _platforms(berth), "--from", str(facts)] for berth in BERTHS}
    with ExitStack() as stack:
        for berth in BERTHS:
            stack.enter_context(registered(cluster, berth, _policies(folder, berth), *options[berth]))
        found = run(cluster, numbers)
    return list(_beside_offline(found, folder, options))


def _beside_offline(found: Run, folder: Path, options: dict[str, list[str]]) -> Iterator[Observed]:
    results: dict[int, TryResult] = {}
    for berth in BERTHS:
        policies = [word for path in _policies(folder, berth) for word in ("--policies", str(path))]
        taken = [case for case in found.cases if case.world.berth == berth and case.plain.ok]
        results |= tried(taken, [*policies, *options[berth]], folder)
    for case in found.cases:
        yield Observed(found, case, results.get(case.number))


def _platforms(berth: str) -> str:
    return ",".join(next(world.platforms for world in WORLDS if world.berth == berth))


def _namespaces(cluster: Cluster) -> Iterator[object]:
    """One for each world and a plain one, created; as Berth is told of them."""
    create_namespace(cluster, PLAIN)
    for world in WORLDS:
        create_namespace(cluster, world.name, {SCOPE: world.berth, **world.labels})
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.name, "labels": dict(world.labels)}}


def _policies(folder: Path, berth: str) -> list[Path]:
    """Files with the policies of its worlds; of a world without any the shipped library."""
    objects = [value for world in WORLDS if world.berth == berth for value in world.objects]
    if not objects:
        return [LIBRARY]
    file = folder / f"{berth}.yaml"
    file.write_text("\n---\n".join(json.dumps(value) for value in objects))
    return [file]
