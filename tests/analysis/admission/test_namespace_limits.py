"""What the limits of a namespace make of the pods of a manifest."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.admission.manifest_results import ManifestResult, admit_manifest
from analysis.admission.manifests import read_manifest
from analysis.admission.namespace_limits import find_unchecked
from analysis.admission_preview import Admission
from policies.document import Document
from policies.facts.cluster_facts import ClusterFacts
from policies.state.updater import Options, Updater
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"


def _object(kind: str, name: str, spec: Raw, **others: Any) -> Raw:
    version = {"Job": "batch/v1", "ResourceClaimTemplate": "resource.k8s.io/v1"}.get(kind, "v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "ml"}, "spec": spec, **others}


def _quota(hard: Raw, used: Raw | None = None) -> Raw:
    return _object("ResourceQuota", "q", {"hard": hard}, **({} if used is None else {"status": {"hard": hard, "used": used}}))


def _range(**limit: Any) -> Raw:
    return _object("LimitRange", "r", {"limits": [{"type": "Container", **limit}]})


def _admitted(resources: Raw, *facts: Raw, parallelism: int = 1, **pod: Any) -> ManifestResult:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i", "resources": resources}], **pod}}
    job = _object("Job", "train", {"parallelism": parallelism, "template": template})
    changes = {(one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]): one for one in facts}
    snapshot = Updater(catalog(), Options(platforms=("gfd",))).apply(changes).snapshot
    return admit_manifest(read_manifest(Document(file="f", value=job), catalog(), "default"), Admission(snapshot))


def _said(result: ManifestResult) -> list[str]:
    return [str(remark) for remark in result.pods[0].remarks]


GPUS = {"limits": {GPU: 2}}
PARAMETERS: list[tuple[Raw, list[Raw], int, str]] = [
    (GPUS, [_quota({f"requests.{GPU}": 1})], 1, "allows 1 requests.nvidia.com/gpu in all, and a pod has 2, so none is ever created;"),
    (GPUS, [_quota({f"requests.{GPU}": 4}, {f"requests.{GPU}": 3})], 1, "has 1 of 4 requests.nvidia.com/gpu left, and a pod has 2,"),
    (GPUS, [_quota({f"requests.{GPU}": 4}, {f"requests.{GPU}": 0})], 3, "has room for 2 of 3 pods (2 requests.nvidia.com/gpu each,"),
    (GPUS, [_quota({"requests.cpu": 4}, {"requests.cpu": 0})], 1, 'so every container must set it, and "main" does not'),
    ({"limits": {GPU: 2, "memory": "8Gi"}}, [_quota({"limits.memory": "4Gi"})], 1, "allows 4Gi limits.memory in all, and a pod has 8Gi"),
    (GPUS, [_range(max={GPU: 1})], 1, 'allows at most 1 nvidia.com/gpu, and container "main" has 2'),
    ({"requests": {"cpu": "250m"}}, [_range(min={"cpu": "500m"})], 1, 'requires at least 500m cpu, and container "main" has 250m'),
    (
        {"requests": {"cpu": 1}, "limits": {"cpu": 4}},
        [_range(maxLimitRequestRatio={"cpu": 2})],
        1,
        "a limit of 4, and its request allows 2",
    ),
    (GPUS, [_range(maxLimitRequestRatio={"cpu": 2})], 1, "does not set both"),
]


@pytest.mark.parametrize(("resources", "facts", "parallelism", "said"), PARAMETERS)
def test_a_refusal_is_a_warning_with_the_amounts(resources: Raw, facts: list[Raw], parallelism: int, said: str) -> None:
    """Berth admits the workload: it is the API server that denies its pods."""
    result = _admitted(resources, *facts, parallelism=parallelism)
    assert not result.denied
    assert len(result.pods[0].refusals) == 1
    assert said in "".join(_said(result))


def test_amounts_that_a_limit_range_fills_in_count() -> None:
    """For quotas, and for what is shown of the pod; the manifest stays as it is."""
    result = _admitted(GPUS, _range(default={"cpu": 2}), _quota({"limits.cpu": 1}, {"limits.cpu": 0}))
    assert result.pods[0].pod["spec"]["containers"][0]["resources"]["limits"] == {GPU: 2, "cpu": 2}
    assert [refusal.need for refusal in result.pods[0].refusals] == [2000]
    assert result.after is result.manifest.value


def test_devices_of_claims_count_by_class() -> None:
    """Of alternatives the most of each class, as the claim may get any of them."""
    ways = [{"name": "a", "deviceClassName": "gpu", "count": 1}, {"name": "b", "deviceClassName": "gpu", "count": 4}]
    devices = {"requests": [{"name": "r", "firstAvailable": ways}]}
    template = _object("ResourceClaimTemplate", "t", {"spec": {"devices": devices}})
    quota = _quota({"gpu.deviceclass.resource.k8s.io/devices": 2}, {"gpu.deviceclass.resource.k8s.io/devices": 0})
    claims = [{"name": "c", "resourceClaimTemplateName": "t"}]
    result = _admitted({}, template, quota, resourceClaims=claims)
    assert "and the claims of a pod have 4, so it waits forever" in "".join(_said(result))


def test_limits_of_another_namespace_do_not_count() -> None:
    """A quota is about one namespace."""
    other = _quota({f"requests.{GPU}": 1})
    other["metadata"]["namespace"] = "other"
    assert not _admitted(GPUS, other).pods[0].refusals


def test_what_is_not_known_is_not_checked() -> None:
    """Nothing is known of a namespace without an object, unless all were read; a quota without a status is checked in part."""
    full = _quota({"pods": 1}, {"pods": 0})
    everything = [{"kind": "followed", "metadata": {"name": kind}} for kind in ("ResourceQuota", "LimitRange")]
    for objects, unchecked in (
        ([], ["resourceQuotas", "limitRanges"]),
        (everything, []),
        ([full], ["limitRanges"]),
        ([_quota({"pods": 1}), *everything], ["resourceQuotas"]),
        ([_range()], ["resourceQuotas"]),
    ):
        assert list(find_unchecked("ml", ClusterFacts.from_objects(objects))) == unchecked
