"""Single objects that could stop a whole kind from being read: nested past a parser's depth, without a name, or not to be decoded."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from policies.policy import API_VERSION, GROUP
from tests.e2e.poison import replica_log, undisturbed
from tests.support.cluster.policy_writes import own_policy
from tests.support.cluster.replicas import Caller
from tests.support.counts import count, only_in_prove
from tests.testcluster.addons.berth import Berth, create_namespace, listening, serve, start
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.etcd import Etcd, store
from tests.testcluster.fixtures import control_plane

LEVELS = 1500
"""of nesting: orjson reads 1,024, the API server 10,000, and a claim's parameters may have 10 KiB"""
WATCH = ("--watch", "5")
"""seconds after which a kind is asked for anew at the latest"""
PREFIX = f"/registry/{GROUP}/gpupolicies/victim/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A cluster, its store, and a replica that follows it."""

    cluster: Cluster
    etcd: Etcd
    kubeconfig: Path
    replica: Berth


@pytest.fixture(scope="module")
def stored(request: pytest.FixtureRequest) -> Iterator[Stored]:
    """With a namespace that is poisoned, ``victim``, and the calm ones."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as cluster, store(cluster) as etcd:
        kubeconfig = install(cluster)
        undisturbed.prepare(cluster.api, ["victim"], "tests.berth.dev/poisoned")
        create_namespace(cluster, "followed")
        yield Stored(cluster=cluster, etcd=etcd, kubeconfig=kubeconfig, replica=serve(cluster, "stored", kubeconfig, *WATCH))


def nested(opening: bytes, closing: bytes) -> bytes:
    return opening * LEVELS + b"1" + closing * LEVELS


FIELDS = b'{"f:spec":' + b'{"f:a":' * LEVELS + b"{}" + b"}" * LEVELS + b"}"
MANAGED = (
    b'{"apiVersion":"%b","kind":"GPUPolicy","metadata":{"name":"deep","managedFields":[{"manager":"x","operation":"Update","apiVersion":'
    b'"%b","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":%b}]},"spec":{"default":{"gracePeriod":"60s"}}}'
) % (API_VERSION.encode(), API_VERSION.encode(), FIELDS)
CLAIM = (
    b'{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"deep"},"spec":{"devices":{"requests":[{"name":"r",'
    b'"exactly":{"deviceClassName":"x"}}],"config":[{"opaque":{"driver":"d.example.com","parameters":%b}}]}}}'
) % nested(b'{"a":', b"}")
BY_EDITORS = {
    "managedFields": (f"/apis/{API_VERSION}/namespaces/victim/gpupolicies", MANAGED),
    "opaque parameters of a claim": ("/apis/resource.k8s.io/v1/namespaces/victim/resourceclaims", CLAIM),
}
"""what whoever may write in one namespace can nest as deep as the API server reads"""


@pytest.mark.parametrize("what", ["managedFields", pytest.param("opaque parameters of a claim", marks=only_in_prove)])
def test_what_is_nested_deeply_stops_nobody(stored: Stored, what: str) -> None:
    """With such an object in one namespace, others' policies are followed as ever, and a new replica becomes ready."""
    path, value = BY_EDITORS[what]
    api = stored.cluster.api
    status, _, text = api._sent("POST", path, value, api._headers("application/json"))  # its answer is too deep for json
    assert status == 201, text[:300]
    try:
        follows(stored)
        starts(stored)
    finally:
        api._sent("DELETE", f"{path}/deep", None, api._headers("application/json"))
        stored.cluster.wait_for(lambda: stored.etcd.get(f"{PREFIX}deep") is None, "it to be gone")
    follows(stored)


WRONG = {
    "a list in lists": nested(b"[", b"]"),
    "maps in a list in maps": b'{"mode":' + b'[{"a":' * LEVELS + b"1" + b"}]" * LEVELS + b"}",
    "a megabyte": json.dumps("x" * 1_000_000).encode(),
    "a number past all": b"1" + b"0" * 300,
}
"""specs that only a store can hold"""


@pytest.mark.parametrize("what", WRONG)
def test_what_the_store_holds_stops_nobody(stored: Stored, what: str) -> None:
    """Straight in etcd, it is named as not understood, and others' policies are followed as ever, by a new replica too."""
    name = f"wrong-{list(WRONG).index(what)}"
    stored.etcd.put(PREFIX + name, put_form(name, WRONG[what]))
    try:
        follows(stored)
        starts(stored)
        stored.cluster.wait_for(lambda: f"GPUPolicy/victim/{name}" in replica_log.named(stored.replica.process.log), f"{name} to be named")
    finally:
        stored.etcd.delete(PREFIX + name)


def test_what_has_no_name_stops_nobody(stored: Stored) -> None:
    """Nor does an object without a name or namespace of its own, which the API server's own cache leaves out."""
    stored.etcd.put(f"{PREFIX}nameless", put_form("nameless", b"{}").replace(b'"name":"nameless",', b""))
    stored.etcd.put(f"{PREFIX}spaceless", put_form("spaceless", b"{}").replace(b'"namespace":"victim",', b""))
    try:
        follows(stored)
        starts(stored)
    finally:
        stored.etcd.delete_all(f"{PREFIX}nameless")
        stored.etcd.delete_all(f"{PREFIX}spaceless")


def test_what_has_an_evil_name_stops_no_status(stored: Stored) -> None:
    """An object whose name no path can hold as it stands gets no status, perhaps; those of others are written as ever."""
    name = 'x\r\n\x1b[31m{"event":"failed"}'
    stored.etcd.put(PREFIX + name, put_form("NAME", b'{"mode":"x"}').replace(b'"NAME"', json.dumps(name).encode()))
    try:
        stored.cluster.wait_for(lambda: f"GPUPolicy/victim/{name}" in replica_log.named(stored.replica.process.log), "it to be named")
        time.sleep(3)  # its status is tried first
        assert stored.cluster.api.apply(own_policy("followed", 99)).ok
        stored.cluster.wait_for(lambda: accepted(stored), "the status of another policy")
    finally:
        stored.etcd.delete(PREFIX + name)


def accepted(stored: Stored) -> bool:
    """Whether the policy that was written last has its status."""
    found = stored.cluster.api.get(API_VERSION, "GPUPolicy", "live", "followed") or {}
    status = found.get("status", {})
    return bool(status.get("observedGeneration") == found["metadata"]["generation"] and status["conditions"])


UNDECODABLE = {
    "no JSON": b"\x00\xff not JSON",
    "a number that Go can't hold": b'{"apiVersion":"%b","kind":"GPUPolicy","metadata":{"name":"x"},"spec":1e999}' % API_VERSION.encode(),
    "another kind": b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"victim"}}',
    "metadata that is a list": b'{"apiVersion":"%b","kind":"GPUPolicy","metadata":[]}' % API_VERSION.encode(),
}
"""values with which the API server's own lists of the kind fail, for all; one without any metadata ends kube-apiserver 1.36 itself"""


@pytest.mark.parametrize("what", list(UNDECODABLE)[: count(1, len(UNDECODABLE))])
def test_what_the_api_server_cannot_read(stored: Stored, what: str) -> None:
    """What was known goes on deciding, and is said to be old; who starts then is not ready and says of which kind; it heals by itself."""
    asked = undisturbed.questions()
    before = undisturbed.answers(stored.replica, asked)
    stored.etcd.put(f"{PREFIX}unreadable", UNDECODABLE[what])
    path = f"/apis/{API_VERSION}/gpupolicies"
    try:
        stored.cluster.wait_for(lambda: not stored.cluster.api.call("GET", path).ok, "the API server to fail")
        stored.cluster.wait_for(
            lambda: "the last known objects are used" in ready(stored.replica)[1], "the replica to tell that it can't list"
        )
        assert ready(stored.replica)[0] == 200
        assert undisturbed.answers(stored.replica, asked) == before
        process = start(stored.cluster, "cold", stored.kubeconfig, *WATCH)
        cold = listening(stored.cluster, "cold", process)
        stored.cluster.wait_for(lambda: "GPUPolicy: GET" in ready(cold)[1], "the new replica to say what it waits for")
        assert ready(cold)[0] == 503
        assert cold.page("/livez").status == 200
        assert {status for status, _ in undisturbed.answers(cold, asked[:3])} == {503}
    finally:
        stored.etcd.delete(f"{PREFIX}unreadable")
    stored.cluster.wait_for(lambda: ready(cold)[0] == 200, "the new replica to be ready")
    assert undisturbed.answers(cold, asked) == before
    stored.cluster.processes.end(process)
    follows(stored)


def ready(replica: Berth) -> tuple[int, str]:
    """/readyz."""
    answer = replica.page("/readyz")
    return answer.status, answer.body.decode()


def put_form(name: str, spec: bytes) -> bytes:
    """An object as etcd has it."""
    metadata = f'{{"name":"{name}","namespace":"victim","uid":"uid-{name}","generation":1}}'
    return f'{{"apiVersion":"{API_VERSION}","kind":"GPUPolicy","metadata":{metadata},"spec":'.encode() + spec + b"}"


def follows(stored: Stored) -> None:
    """A policy that is written in another namespace now is decided by soon."""
    grace = 100 + time.monotonic_ns() // 10**8 % 3000
    assert stored.cluster.api.apply(own_policy("followed", grace)).ok
    caller = Caller(stored.replica, "followed")
    try:
        stored.cluster.wait_for(lambda: caller.ask().grace == grace, "the replica to follow a policy of another namespace")
    finally:
        caller.close()


def starts(stored: Stored) -> None:
    """A new replica is ready soon."""
    process = start(stored.cluster, "new", stored.kubeconfig, *WATCH)
    replica = listening(stored.cluster, "new", process)
    try:
        stored.cluster.wait_for(lambda: ready(replica)[0] == 200, f"a new replica to be ready: {ready(replica)[1]}")
    finally:
        stored.cluster.processes.end(process)
