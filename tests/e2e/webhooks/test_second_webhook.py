"""A second mutating webhook before Berth and after it, called once or again: what is stored is inside ``require``, or it is not stored.

Whether it is inside is judged without Berth, on nodes whose GPUs are known and which no taint protects: tests/e2e/inside.py. A webhook
is called a second time only where another changed the pod after it (reinvocationPolicy: IfNeeded, as Berth's is), and never a third.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, product
from pathlib import Path

import yaml

from tests.e2e import one_policy
from tests.e2e.rules.inside import Judge, asks, forbids, open_nodes, scheduled
from tests.e2e.webhooks import second_webhook
from tests.e2e.webhooks.other_mutations import DOES, GPU
from tests.e2e.webhooks.second_webhook import WHENS
from tests.support.counts import PROVE
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import SCOPE, Berth, registered
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import NewNamespace

REQUIRE: Raw = {
    "families": {"in": ["hopper"]},
    "sharing": ["Exclusive"],
    "gpusPerPod": {"max": 2},
    "requestsEqualLimits": ["accelerators"],
    "gracePeriod": {"min": "10m", "max": "1h"},
    "tolerations": {"forbid": [{"key": "team", "value": "other"}]},
}
STORED, NOWHERE = "stored", "stored, and no node will do"
UNTOUCHED = ("nothing", "annotate-each-time", "add-a-gpu-sidecar", "strip-tolerations", "strip-applied", "reverse-terms", "select-h100")
DENIED = {
    "add-a-gpu-init-container": "BERTH-111",
    "ask-for-more": "BERTH-111",
    "ask-unequally": "BERTH-101",
    "ask-for-a-slice": "BERTH-121",
    "pin-to-t4": "BERTH-124",
    "name-t4": "BERTH-124",
    "tolerate-what-is-forbidden": "BERTH-131",
    "tolerate-everything": "BERTH-131",
    "wait-longer": "BERTH-141",
}
BECOMES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*UNTOUCHED, "tolerate-more", "ask-for-none"), (STORED,) * 4),
    **{does: (code,) * 4 for does, code in DENIED.items()},
    # Berth comes again after it, but not after its second call.
    "strip-affinity": (STORED, STORED, STORED, "BERTH-123"),
    "strip-all": (STORED, STORED, STORED, "BERTH-123"),
    "add-a-term": (STORED, STORED, STORED, "BERTH-123"),
    "wait-shorter": (STORED, STORED, STORED, "BERTH-133"),
    # Its first call before Berth has no terms to flip.
    "flip-family": (STORED, "BERTH-121", "BERTH-121", "BERTH-121"),
    "add-a-gpu-sidecar-each-time": (STORED, "BERTH-111", STORED, STORED),
    # After Berth it contradicts the affinity that is written already: no node is both.
    "select-t4": ("BERTH-121", "BERTH-121", NOWHERE, NOWHERE),
    "empty-terms": (NOWHERE, NOWHERE, NOWHERE, NOWHERE),
}
"""What the webhook does -> what becomes of a GPU pod where it is called as WHENS says"""
OF_PLAIN: Mapping[str, tuple[str, ...]] = {
    "add-a-gpu-sidecar": (STORED, STORED, "BERTH-123", "BERTH-123"),
    "add-a-gpu-init-container": ("BERTH-111", "BERTH-111", "BERTH-123", "BERTH-123"),
}
"""The same of a pod that asks for no GPU before: for what is no GPU pod when its turn comes, /mutate is not called later either"""
_number = count()


@contextmanager
def berth(cluster: Cluster, folder: Path, require: Raw) -> Iterator[Berth]:
    """With this one policy, in FOLDER/policy.yaml, and the nodes as facts."""
    one_policy.write(folder / "policy.yaml", require)
    facts = [{"apiVersion": "v1", "kind": "Node", **node} for node in cluster.api.list("v1", "Node")]
    (folder / "facts.yaml").write_text(yaml.safe_dump_all(facts))
    options = ("--platforms", "gfd", "--from", str(folder / "facts.yaml"))
    with registered(cluster, f"second-{next(_number)}", (folder / "policy.yaml",), *options) as started:
        yield started


def labelled(name: str, does: str, when: str) -> Raw:
    """Metadata of a pod to which the webhook does that, there."""
    return {"name": name, "labels": {second_webhook.DOES: does, second_webhook.WHEN: when}}


def pod(name: str, does: str, when: str, *, gpus: int = 1) -> Raw:
    """Its container asks for this many; for what is done to terms it has two that any node meets."""
    spec: Raw = {"containers": [{"name": "main", "image": "i:1", "resources": {"limits": {GPU: str(gpus)}} if gpus else {}}]}
    if does.endswith(("-terms", "-term")):
        keys = ("kubernetes.io/os", "kubernetes.io/arch")
        terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}, {"key": "no-such", "operator": "DoesNotExist"}]} for key in keys]
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": labelled(name, does, when), "spec": spec}


def cases() -> Iterator[tuple[Raw, str]]:
    """A pod, and what becomes of it. In `make test` what is the same whenever the webhook is called is tried at one of the four."""
    for (table, gpus), (i, when) in product(((BECOMES, 1), (OF_PLAIN, 0)), enumerate(WHENS)):
        for number, (does, becomes) in enumerate(table.items()):
            name = f"{does}-{when}{'' if gpus else '-plain'}".lower()
            if PROVE or len(set(becomes)) > 1 or number % len(WHENS) == i:
                yield pod(name, does, when, gpus=gpus), becomes[i]


def open_gpus() -> tuple[FakeNode, ...]:
    """One node inside, and three outside: another family twice, and the right one shared."""
    gpus = {model: catalog().models(model)[0] for model in ("T4", "A100-80GB", "H100-80GB")}
    shared = nodes.time_sliced("open-h100-shared", gpus["H100-80GB"], 50, 4)
    return (*(nodes.whole(f"open-{gpu.model.partition('-')[0].lower()}", gpu, 200) for gpu in gpus.values()), shared)


INSIDE, OUTSIDE = "open-h100", ("open-t4", "open-a100", "open-h100-shared")


def test_whatever_a_second_webhook_does_what_is_stored_is_inside(cluster: Cluster, new_namespace: NewNamespace, tmp_path: Path) -> None:
    """Each case: stored inside ``require``, or denied by Berth with a code and nothing stored; never an internal error."""
    table, beside = list(cases()), new_namespace()
    with (
        open_nodes(cluster, *open_gpus()) as opened,
        berth(cluster, tmp_path, REQUIRE) as by,
        second_webhook.serving(tmp_path, DOES) as second,
    ):
        namespace = new_namespace({SCOPE: by.name})
        with second_webhook.registered(cluster, second, by.name, namespace), ThreadPoolExecutor(8) as pool:
            replies = dict(pool.map(lambda case: (name_of(case[0]), cluster.api.try_create(case[0], namespace)), table))
        stored = [reply.body for reply in replies.values() if reply.ok]
        assert {name_of(one): found for one in stored if (found := forbids(one, gpus=2, grace=3600, taint=("team", "other")))} == {}
        assert [name_of(one) for one in stored if asks(one) and one["spec"]["terminationGracePeriodSeconds"] < 600] == []
        takers = Judge(cluster=cluster, namespace=beside, nodes=opened).takers([UNJUDGED, *filter(asks, stored)])
        assert set(takers.pop("unjudged")) == {INSIDE, *OUTSIDE}, "without Berth the pod would be placed on any of them"
        assert {name: found for name, found in takers.items() if set(found) - {INSIDE}} == {}
        assert {name: became(reply, takers.get(name)) for name, reply in replies.items()} == {
            name_of(one): expected for one, expected in table
        }
        assert bound_outside(cluster, namespace, stored) == []
        assert {name: calls for name, calls in second.calls.items() if calls > 2 and not name.startswith("try-")} == {}
        cluster.api.delete_all("v1", "Pod", namespace)


UNJUDGED = {"metadata": {"name": "unjudged"}, "spec": pod("", "nothing", "")["spec"]}


def name_of(value: Raw) -> str:
    name: str = value["metadata"]["name"]
    return name


def became(reply: Reply, takers: list[str] | None) -> str:
    """As the table has it: of a denial its first code, or the whole message where it is not Berth's."""
    if reply.ok:
        return STORED if takers is None or takers else NOWHERE
    found = re.match(
        r'admission webhook "(?:mutate|validate)\.pods\.berth\.dev" denied the request: (?:\d reasons:\n- )?(BERTH-\d+): ', reply.message
    )
    return found[1] if found else reply.message


def bound_outside(cluster: Cluster, namespace: str, stored: list[Raw]) -> list[tuple[str, str]]:
    """(pod, node) of those that kube-scheduler has placed where ``require`` forbids, once it has tried them all."""
    allowed = {"h100", "h200", INSIDE}

    def tried() -> list[Raw] | None:
        pods = cluster.api.list("v1", "Pod", namespace)
        return pods if len(pods) == len(stored) and all(scheduled(one) is not None for one in pods) else None

    pods = cluster.wait_for(tried, "kube-scheduler to have tried every pod")
    bound = [(name_of(one), one["spec"]["nodeName"]) for one in pods if asks(one) and one["spec"].get("nodeName")]
    assert len(bound) > len(pods) / 2
    return [(name, node) for name, node in bound if node not in allowed]


def test_a_job_whose_pods_another_webhook_spoils_says_so_and_runs_when_that_is_gone(
    cluster: Cluster, new_namespace: NewNamespace, tmp_path: Path
) -> None:
    """The denial says what is likely and that a retry is right; the Job controller tries again by itself, and then it is."""
    with berth(cluster, tmp_path, REQUIRE) as by, second_webhook.serving(tmp_path, DOES) as second:
        namespace = new_namespace({SCOPE: by.name})
        template = pod("", "strip-affinity", "after-IfNeeded")
        template["metadata"].pop("name")
        template["spec"]["restartPolicy"] = "Never"
        with second_webhook.registered(cluster, second, by.name, namespace):
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {"template": template}}
            cluster.api.create(job, namespace)
            selector = {"fieldSelector": "involvedObject.name=train,reason=FailedCreate"}
            events = cluster.wait_for(lambda: cluster.api.list("v1", "Event", namespace, **selector), "the Job to say why it has no pod")
        assert 'admission webhook "validate.pods.berth.dev" denied the request: BERTH-123: ' in events[0]["message"]
        assert f"{RETRY} Likely cause: another webhook removed the node affinity that Berth wrote." in events[0]["message"]
        pods = cluster.wait_for(
            lambda: cluster.api.list("v1", "Pod", namespace, fieldSelector="spec.nodeName!="), "the Job's pod to be bound"
        )
        assert {one["spec"]["nodeName"] for one in pods} <= {"h100", "h200"}


RETRY = "create the pod again (controllers retry automatically)."


def test_policies_that_change_between_the_two_calls_deny_the_pod_once(
    cluster: Cluster, new_namespace: NewNamespace, tmp_path: Path
) -> None:
    """What /mutate wrote under the old ones is judged by the new ones; the message says what is likely, and a retry is right."""
    policy = tmp_path / "policy.yaml"
    started: list[Berth] = []

    def tighten(_: Raw) -> None:
        one_policy.write(policy, REQUIRE)
        cluster.wait_for(lambda: bool(started[0].events("policies_loaded")[1:]), "Berth to follow")

    with berth(cluster, tmp_path, {}) as by, second_webhook.serving(tmp_path, {"nothing": DOES["nothing"], "tighten": tighten}) as second:
        started.append(by)
        namespace = new_namespace({SCOPE: by.name})
        with second_webhook.registered(cluster, second, by.name, namespace):
            first = cluster.api.try_create(pod("first", "tighten", "after-Never"), namespace)
            again = cluster.api.create(pod("first", "nothing", "after-Never"), namespace)
    assert became(first, None) == "BERTH-123"
    assert f"{RETRY} Likely cause: the policies changed while the pod was being created" in first.message
    assert "nodeAffinity" in again["spec"]["affinity"]
