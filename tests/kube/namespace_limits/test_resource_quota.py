"""ResourceQuota: what it counts of a pod, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from kube.namespace_limits.resource_quota import is_counted, pod_usage, quota_refusals, read_quota

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"
GI = 2**30


def _spec(requests: Raw | None = None, limits: Raw | None = None, **others: Any) -> Raw:
    return {"containers": [{"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}], **others}


def _quota(hard: Raw, used: Raw | None = None, **spec: Any) -> Raw:
    status = {} if used is None else {"status": {"hard": hard, "used": used}}
    return {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}, **status}


def _refused(spec: Raw, *quotas: Raw, **options: Any) -> list[tuple[Any, ...]]:
    found = quota_refusals(spec, map(read_quota, quotas), **options)
    return [(one.kind, one.resource, one.need, one.hard, one.used, one.passing) for one in found]


def test_what_a_pod_counts_for() -> None:
    """Requests under two names, limits under one, extended resources under requests alone, and the pod itself under two."""
    spec = _spec({"cpu": "500m", "memory": "1Gi"}, {"cpu": 2, GPU: 2, "hugepages-2Mi": "4Mi"})
    assert pod_usage(spec).amounts == {
        "pods": 1,
        "count/pods": 1,
        "cpu": 500,
        "requests.cpu": 500,
        "limits.cpu": 2000,
        "memory": GI,
        "requests.memory": GI,
        f"requests.{GPU}": 2,
        "hugepages-2Mi": 4 * 2**20,
        "requests.hugepages-2Mi": 4 * 2**20,
    }
    assert pod_usage(spec).paths[f"requests.{GPU}"] == ("spec", "containers", 0, "resources", "limits", GPU)


def test_init_containers_and_overhead_count_as_for_the_scheduler() -> None:
    """The largest init container, and the runtime class's overhead; of limits only where the pod has one."""
    init = [{"name": "i", "resources": {"limits": {GPU: 4}}}]
    usage = pod_usage(_spec({"cpu": 1}, {GPU: 1}, initContainers=init, overhead={"cpu": "250m"})).amounts
    assert (usage[f"requests.{GPU}"], usage["requests.cpu"], "limits.cpu" in usage) == (4, 1250, False)


@pytest.mark.parametrize(
    ("used", "found"),
    [
        ("0", []),
        ("7", [("exceeded", f"requests.{GPU}", 2, 8, 7, True)]),
        ("8", [("exceeded", f"requests.{GPU}", 2, 8, 8, True)]),
    ],
)
def test_a_pod_is_refused_while_others_use_the_quota(used: str, found: list[Any]) -> None:
    """It is created once they have ended."""
    entry = f"requests.{GPU}"
    assert _refused(_spec(None, {GPU: 2}), _quota({entry: "8"}, {entry: used})) == found


def test_a_pod_larger_than_the_quota_is_never_created() -> None:
    """Also where the usage is not known."""
    assert _refused(_spec(None, {GPU: 2}), _quota({f"requests.{GPU}": 1})) == [("exceeded", f"requests.{GPU}", 2, 1, 0, False)]


def test_a_quota_may_have_room_for_some_pods_of_a_workload() -> None:
    """Of 4 pods with 2 GPUs, 2 are created."""
    quota = _quota({f"requests.{GPU}": 6, "pods": 100}, {f"requests.{GPU}": 2, "pods": 1})
    assert _refused(_spec(None, {GPU: 2}), quota, pods=4) == [("some", f"requests.{GPU}", 2, 6, 2, True)]
    assert _refused(_spec(None, {GPU: 2}), quota, pods=2) == []


def test_an_amount_of_zero_is_never_refused() -> None:
    """Nothing is added to what is used."""
    assert _refused(_spec({GPU: 0}), _quota({f"requests.{GPU}": 0})) == []


@pytest.mark.parametrize("entry", [GPU, f"limits.{GPU}", "amd.com/gpu"])
def test_an_extended_resource_counts_only_with_requests(entry: str) -> None:
    """Such an entry refuses nothing, however much the pod has."""
    assert not is_counted(entry)
    assert _refused(_spec(None, {GPU: 100}), _quota({entry: "1"})) == []


@pytest.mark.parametrize(
    "entry",
    [f"requests.{GPU}", "cpu", "pods", "count/jobs.batch", "gpu.example.com.deviceclass.resource.k8s.io/devices",
     "gold.storageclass.storage.k8s.io/requests.storage", "hugepages-2Mi", "services.loadbalancers"],
)  # fmt: skip
def test_other_entries_count(entry: str) -> None:
    """Something, if not pods."""
    assert is_counted(entry)


def test_a_quota_of_cpu_or_memory_needs_an_amount_in_every_container() -> None:
    """Also in init containers; a limit is a request, not the other way round; amounts of the whole pod are enough."""
    both = _quota({"requests.cpu": "100", "limits.memory": "1Ti", "limits.ephemeral-storage": "1Ti"})
    assert [one[:2] for one in _refused(_spec({"memory": "1Gi"}), both)] == [("unset", "limits.memory"), ("unset", "requests.cpu")]
    assert _refused(_spec(None, {"cpu": 1, "memory": "1Gi"}), both) == []
    init = [{"name": "setup"}]
    found = list(quota_refusals(_spec(None, {"cpu": 1, "memory": "1Gi"}, initContainers=init), [read_quota(both)]))
    assert {(one.container, one.path[1]) for one in found} == {("setup", "initContainers")}
    assert _refused(_spec(resources={"limits": {"cpu": 1, "memory": "1Gi"}}), both) == []


SCOPES: list[tuple[Raw, Raw, bool]] = [
    ({"scopes": ["BestEffort"]}, {}, True),
    ({"scopes": ["NotBestEffort"]}, {}, False),
    ({"scopes": ["NotBestEffort"]}, {"cpu": 1}, True),
    ({"scopes": ["Terminating"]}, {}, False),
    ({"scopes": ["NotTerminating", "BestEffort"]}, {}, True),
    ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}, {}, True),
    ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]}}, {}, False),
    ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["low"]}]}}, {}, True),
    ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}}, {}, True),
    ({"scopes": ["CrossNamespacePodAffinity"]}, {}, False),
    ({"scopes": ["VolumeAttributesClass"]}, {}, False),
]


@pytest.mark.parametrize(("scope", "requests", "counted"), SCOPES)
def test_a_quota_counts_the_pods_in_its_scopes(scope: Raw, requests: Raw, *, counted: bool) -> None:
    """All of them must hold."""
    assert bool(_refused(_spec(requests, priorityClassName="high"), _quota({"pods": 0}, **scope))) is counted


def test_pods_with_a_deadline_are_terminating() -> None:
    """As those of Jobs with activeDeadlineSeconds in the template."""
    quota = _quota({"pods": 0}, scopes=["Terminating"])
    assert _refused(_spec(activeDeadlineSeconds=60), quota)
    assert not _refused(_spec(), quota)


def test_what_claims_count_is_refused_too() -> None:
    """A quota with scopes counts no claims."""
    entry = "gpu.example.com.deviceclass.resource.k8s.io/devices"
    assert _refused(_spec(), _quota({entry: 1}), claimed={entry: 2}) == [("exceeded", entry, 2, 1, 0, False)]
    assert _refused(_spec(), _quota({entry: 1}, scopes=["BestEffort"]), claimed={entry: 2}) == []
