"""Kinds of operators, by the definitions that their authors publish: who applies one reads at once what its pods will meet."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from catalog import Workload
from kube.templates import group_of
from tests.e2e.judged import Judged, judged
from tests.support.calls.expected_calls import NOTHING
from tests.support.cases.kind_manifests import FOUND, Raw, calls
from tests.support.cases.workload_manifests import BUILT_IN
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import operators
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

LARGEST = count(120_000, 10_000_000)
"""bytes of a definition: the API server takes the small ones in some seconds, and all of them in a minute"""
GONE = {"podSpecOverrides", "podTemplateOverrides"}
"""fields of a TrainJob in older releases of Trainer; these definitions are of 2.2"""


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[Judged]:
    """A control plane with all definitions, and a policy that lets none of the manifests' pods pass."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as cluster:
        defined = operators.definitions(catalog(), LARGEST)
        operators.define(cluster, defined)
        with judged(cluster, "operators", namespaces={"enforce": {"mode": "enforce"}}, known="namespaces") as found:
            yield found


def served(cluster: Cluster, value: Raw) -> bool:
    try:
        return bool(cluster.api.kind(value["apiVersion"], value["kind"]))
    except LookupError:
        return False


def test_who_applies_a_workload_of_an_operator_reads_what_its_pods_will_meet(world: Judged) -> None:
    """Every manifest whose pods ask for an accelerator is stored, with the denial as a warning; every other one with none."""
    custom = [(workload, value) for workload, value in FOUND if group_of(value["apiVersion"]) not in BUILT_IN]
    tried = [(workload, value) for workload, value in custom if served(world.cluster, value) and GONE.isdisjoint(value["spec"])]
    wrong = [found for workload, value in tried if (found := wrongly_warned(world, workload, value)) is not None]
    assert not wrong, "\n".join(wrong)
    assert len({value["kind"] for _, value in tried}) >= count(5, 20)


def wrongly_warned(world: Judged, workload: Workload, value: Raw) -> str | None:
    """What kubectl printed, where that is not what it should be."""
    word = "apply" if "name" in value["metadata"] else "create"
    command = world.cluster.kubectl(word, "-n", world["enforce"], "-f", "-")
    done = subprocess.run(command, input=json.dumps(value), capture_output=True, text=True, check=False)
    warnings = [line for line in done.stderr.splitlines() if line.startswith("Warning: BERTH-112 ") and " will be denied): " in line]
    if "name" in value["metadata"]:
        world.cluster.api.delete({**value, "metadata": {**value["metadata"], "namespace": world["enforce"]}})
    right = done.returncode == 0 and bool(warnings) == (calls(workload, value) != NOTHING)
    return None if right else f"{value['kind']} {value['metadata']}: {done.stdout}{done.stderr}"
