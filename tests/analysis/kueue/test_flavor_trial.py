"""Kueue's rule of which pods match a flavor."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from analysis.kueue.flavor_trial import Apart, apart, placed
from kube.taints import Taint
from policies.facts import admission_queues
from policies.facts.admission_queues import Flavor
from tests.support.counts import count

Raw = dict[str, Any]
FAMILY, POOL = "nvidia.com/gpu.family", "pool"
HOPPER = Flavor(labels=((FAMILY, "hopper"),))
TAINTED = Flavor(labels=((FAMILY, "hopper"),), taints=(Taint(key="nvidia.com/gpu", value="present"),))
EXISTS = {"key": "nvidia.com/gpu", "operator": "Exists"}


def required(*terms: Raw) -> Raw:
    nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": nodes}}


def term(key: str, *values: str, operator: str = "In") -> Raw:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeSelector": {FAMILY: "hopper"}},
        {"nodeSelector": {"zone": "a"}},
        required(term(FAMILY, "ampere", "hopper")),
        required(term(FAMILY, "ampere"), term("zone", "a")),
        required(term(FAMILY, "ampere"), {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}),
        required(term(FAMILY, "ampere", operator="NotIn")),
        required(term(FAMILY, operator="Exists")),
        required(term("other", operator="Exists")),
        required(term(FAMILY, "x", operator="Newer")),
    ],
    ids=str,
)
def test_pods_that_match(spec: Raw) -> None:
    """On keys that the flavor has nothing contradicts it; a term without such keys matches whatever the others say, as one with
    an operator that is not known is taken to."""
    assert apart(spec, HOPPER) is None


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {FAMILY: "ampere"}},
        required(term(FAMILY, "ampere")),
        required(term(FAMILY, "ampere"), term(FAMILY, "ada-lovelace")),
        required(term(FAMILY, operator="DoesNotExist")),
        required(term(FAMILY, "5", operator="Gt")),
        {"nodeSelector": {FAMILY: "ampere"}, **required(term(FAMILY, "hopper"))},
    ],
    ids=str,
)
def test_pods_that_do_not(spec: Raw) -> None:
    """The label of the flavor that is in the way is named."""
    assert apart(spec, HOPPER) == Apart(key=FAMILY, value="hopper")


def test_taints_are_tolerated_by_the_pod_or_by_the_flavor() -> None:
    """PreferNoSchedule repels nobody; Berth's own tolerations come later, with the pods, and are none of the template's."""
    assert apart({}, TAINTED) == Apart(taint=TAINTED.taints[0])
    assert apart({"tolerations": [EXISTS]}, TAINTED) is None
    given = admission_queues.flavor({"spec": {"nodeTaints": [{**EXISTS, "effect": "NoExecute"}], "tolerations": [EXISTS]}})
    assert given.taints
    assert apart({}, given) is None
    assert apart({}, Flavor(taints=(Taint(key="a", effect="PreferNoSchedule"),))) is None


def test_pods_are_confined_to_the_flavor() -> None:
    """By its labels beside the author's own, and with its tolerations; the pod that is given stays as it was."""
    flavor = admission_queues.flavor({"spec": {"nodeLabels": {FAMILY: "hopper"}, "tolerations": [EXISTS]}})
    pod = {"spec": {"nodeSelector": {"zone": "a"}, "containers": []}}
    assert placed(pod, flavor) == {
        "spec": {"nodeSelector": {"zone": "a", FAMILY: "hopper"}, "containers": [], "tolerations": [EXISTS]},
    }
    assert pod == {"spec": {"nodeSelector": {"zone": "a"}, "containers": []}}
    assert placed(pod, Flavor()) == pod


def test_what_is_confined_to_a_flavor_matches_it() -> None:
    """Whatever pod matches a flavor still does once it is confined to it, of random pods and flavors."""
    random, kept = Random(244), 0
    for _ in range(count(300, 20_000)):
        spec = _random_spec(random)
        flavor = Flavor(
            labels=tuple(sorted((key, random.choice("abc")) for key in random.sample((FAMILY, POOL, "zone"), random.randint(0, 3)))),
            taints=tuple(Taint(key=random.choice("xy"), effect="NoSchedule") for _ in range(random.randint(0, 1))),
        )
        if apart(spec, flavor) is None:
            kept += 1
            assert apart(placed({"spec": spec}, flavor)["spec"], flavor) is None
    assert kept


def _random_spec(random: Random) -> Raw:
    operators = ("In", "NotIn", "Exists", "DoesNotExist")
    terms = [
        {
            "matchExpressions": [
                {"key": random.choice((FAMILY, POOL, "zone")), "operator": random.choice(operators), "values": random.sample("abc", 2)}
                for _ in range(random.randint(0, 2))
            ]
        }
        for _ in range(random.randint(0, 3))
    ]
    selector = {key: random.choice("abc") for key in random.sample((FAMILY, "zone"), random.randint(0, 1))}
    return {"nodeSelector": selector, "tolerations": [{"key": "x", "operator": "Exists"}], **(required(*terms) if terms else {})}


@pytest.mark.parametrize("spec", [{"nodeTaints": 3, "nodeLabels": [], "tolerations": {}}, [], None, {"nodeTaints": [None]}], ids=str)
def test_no_content_makes_a_reader_raise(spec: Any) -> None:
    """What can't be read is absent."""
    assert admission_queues.flavor({"spec": spec}) == Flavor()
    assert admission_queues.cluster_queue({"spec": spec}).groups == ()
    assert admission_queues.local_queue({"spec": spec}).cluster_queue == ""


@pytest.mark.parametrize("cohort", [{"cohort": "shared"}, {"cohortName": "shared"}], ids=str)
@pytest.mark.parametrize("selector", [None, {}, {"matchLabels": {"a": "b"}}], ids=str)
def test_what_is_kept_of_a_cluster_queue_reads_the_same(selector: Raw | None, cohort: Raw) -> None:
    """With its amounts, by v1beta1 and v1beta2; without what is in use, which changes with every workload."""
    quotas = [{"name": "nvidia.com/gpu", "nominalQuota": 8}, {"name": "cpu", "nominalQuota": 100}]
    group = {"coveredResources": ["nvidia.com/gpu", "cpu"], "flavors": [{"name": "hopper", "resources": quotas}]}
    cpus = {"coveredResources": ["memory"], "flavors": [{"name": "any", "resources": []}]}
    whole = {"spec": {"resourceGroups": [group, cpus], "stopPolicy": "Hold", "namespaceSelector": selector, "preemption": {}, **cohort}}
    kept = {"spec": admission_queues.slimmed(whole)}
    assert admission_queues.cluster_queue(kept) == admission_queues.cluster_queue(whole)
    assert "preemption" not in kept["spec"]
    read = admission_queues.cluster_queue(kept)
    assert (read.groups, read.cohort) == ((admission_queues.Quotas(("nvidia.com/gpu",), ("hopper",)),), "shared")
    assert [(quota.resource, quota.nominal) for quota in read.quotas] == [("nvidia.com/gpu", 8), ("cpu", 100_000)]
