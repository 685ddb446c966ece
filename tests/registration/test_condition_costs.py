"""No condition can be made to fail by its cost: the most expensive objects that the API server stores, by its own compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from registration.entries import CLAIMS, InstallChoices
from tests.support.calls.expected_calls import BEGINNINGS, LIMIT_OF_ONE
from tests.support.calls.webhook_dispatch import AdmissionRequest, judge
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.generators.written_claims import claim, exactly, first_of

Raw = dict[str, Any]
MOST = LIMIT_OF_ONE // 2
STORED = 1_500_000
"""Bytes of the largest object (etcd's --max-request-bytes)."""
JOBS, JOBSETS = ("batch", "v1", "jobs"), ("jobset.x-k8s.io", "v1alpha2", "jobsets")
SHAPES = [*(f"{beginning}{{}}" for beginning in BEGINNINGS), "nvidia.com/gpu{}", "n/{}", "x.example/{}", "a" * 200 + "/{}"]
"""Names that ask for nothing: as patterns begin, as their first letters, as known names, and others."""


def pod(shape: str, containers: int, names: int) -> Raw:
    """A pod as large as is walked, or beyond: in both lists and in both maps so many names at zero."""
    amounts = {shape.format(f"{number:02}x"): "0" for number in range(names)}
    lists = {
        kind: [
            {"name": f"{kind[:1]}{number}", "image": "i", "resources": {"limits": amounts, "requests": amounts}}
            for number in range(containers)
        ]
        for kind in ("containers", "initContainers")
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": lists}


def metadata(size: int) -> Raw:
    """As many owners, annotations and labels as fit into this many bytes."""
    owner = {"apiVersion": "v1", "kind": "A", "uid": "u", "controller": False}
    owners = [{**owner, "name": f"{number}"} for number in range(size // 80)]
    annotations = {f"a{number}": "" for number in range(min(size, 262_144) // 8)}
    return {"name": "p", "ownerReferences": owners, "annotations": annotations, "labels": {f"l{n}": "" for n in range(size // 100)}}


def walked() -> Iterator[Raw]:
    for shape in SHAPES[:: count(6, 1)]:
        for containers, names in ((200, 16), (200, 1), (201, 16), (2, 5_000 * count(1, 3))):
            yield pod(shape, containers, names)


def changed(new: Raw) -> Raw:
    """The same before an update of almost nothing: the last toleration of as many as fit."""
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(10_000)]
    new["spec"]["tolerations"] = tolerations
    return {**new, "spec": {**new["spec"], "tolerations": [*tolerations[:-1], {"operator": "Exists"}]}}


def requests() -> Iterator[AdmissionRequest]:
    for one in walked():
        template = {"metadata": {}, "spec": {**one["spec"], "restartPolicy": "Never"}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
        yield AdmissionRequest(object=one)
        yield AdmissionRequest(object=job, resource=JOBS)
    for one in (pod(SHAPES[0], 200, 16), pod("n/{}", 1, 1)):
        large = {**one, "metadata": metadata(STORED // 2)}
        yield AdmissionRequest(object=large)
        yield AdmissionRequest(object=large, old=changed(large), operation="UPDATE")
        jobs = [{"name": f"j{n}", "replicas": 0, "template": {"spec": {"template": {"spec": one["spec"]}}}} for n in range(count(4, 20))]
        jobset = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": metadata(STORED // 4),
            "spec": {"replicatedJobs": jobs},
        }
        yield AdmissionRequest(object=jobset, resource=JOBSETS, typed=False)
        other = {**jobset, "spec": {"replicatedJobs": [*jobs[:-1], {**jobs[-1], "replicas": 1}]}}
        yield AdmissionRequest(object=jobset, old=other, operation="UPDATE", resource=JOBSETS, typed=False)
    largest = claim(*[first_of(*[exactly("compute-domain.nvidia.com")] * 8)] * 32)
    yield AdmissionRequest(object=largest, resource=("resource.k8s.io", "v1", "resourceclaims"))


def test_nothing_costs_more_than_half_of_what_a_condition_may() -> None:
    """In every registration; a tuned object is then as far from an error as a plain one. `make test` has the default registration and every
    sixth name, the most expensive one among them."""
    asked = [replace(one, cost=True) for one in requests()]
    for claims in CLAIMS[: count(1, 3)]:
        _, answers = judge(asked, chosen=InstallChoices(claims=claims, queues=True))
        errors = [(entry, why[:200]) for one in answers for entry, why in one.errors.items() if not one.undecodable]
        assert errors == []
        assert all(not one.undecodable for one in answers)
        dearest = max((cost, entry) for one in answers for entry, cost in one.cost.items())
        assert dearest < (MOST, "")
        assert dearest > (MOST // 4, "")


def test_a_plain_pod_costs_little() -> None:
    """Thirty containers of twelve names by limit and by request: a fiftieth of the budget."""
    amounts = {f"example.com/device-{number:02}": "1" for number in range(12)}
    containers = [{"name": f"c{n}", "image": "i", "resources": {"limits": amounts, "requests": amounts}} for n in range(30)]
    plain = AdmissionRequest(
        object={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}, cost=True
    )
    (answer,) = judge([plain])[1]
    assert not answer.called
    assert max(answer.cost.values()) < LIMIT_OF_ONE / 50
    assert catalog().resource("example.com/device-00") is None
