"""Claims by somebody who wants a device that policies do not allow, or more of them: each is refused with its code, or has what is
required at the end of every way to meet it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from policies.claims import cel, judging
from policies.claims.claim_request import EXTENDED, ClaimRequest
from policies.facts import device_requests
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass
from policies.patch.json_tree import apply_patch
from policies.state.snapshot import Facts
from policies.verdict import Verdict
from tests.support import snapshots
from tests.support.cases.golden import catalog_with, policies_of
from tests.support.claims.random_claims import CLASSES
from tests.support.generators.written_claims import claim, exactly, first_of

Raw = dict[str, Any]
CATALOG = catalog_with()
REQUIRE: Raw = {
    "families": {"in": ["hopper"]},
    "sharing": ["Exclusive"],
    "gpusPerPod": {"max": 4},
    "tolerations": {"forbid": [{"key": "maintenance"}]},
}


def facts_of(require: Raw, classes: Mapping[str, DeviceClass] = CLASSES) -> Facts:
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "guard"}, "spec": {"mode": "Enforce", "require": require}}
    built = snapshots.build(policies_of([policy], CATALOG), CATALOG, platforms=("gfd",))
    return built.with_facts(ClusterFacts(device_classes=classes)).facts_for("ml")


FACTS = facts_of(REQUIRE)


def judged(made: Raw, facts: Facts = FACTS, user: str = "mallory") -> Verdict:
    return judging.judge(ClaimRequest(user=user, kind=made["kind"], made=made), facts)


def written() -> tuple[str, ...]:
    """The selectors that an honest claim gets."""
    edits = judged(claim(exactly())).edits
    return tuple(edit.value["cel"]["expression"] for edit in edits)


FAMILY, TYPE = written()


def saying(*texts: Any, device_class: str = "gpu.nvidia.com", **more: Any) -> Raw:
    """A request with these selectors."""
    return exactly(device_class, selectors=[{"cel": {"expression": text}} for text in texts], **more)


def with_spec(made: Raw, **more: Any) -> Raw:
    return {**made, "spec": {**made["spec"], "devices": {**made["spec"]["devices"], **more}}}


def with_metadata(made: Raw, **more: Any) -> Raw:
    return {**made, "metadata": {**made["metadata"], **more}}


MANY = tuple(f"device.driver != 'no-{number}'" for number in range(40))
CONSTRAINED = [{"requests": ["gpu"], "matchAttribute": "gpu.nvidia.com/architecture"}]
DISTINCT = [{"requests": ["gpu"], "distinctAttribute": "gpu.nvidia.com/architecture"}]
PLACE = "/spec/devices/requests/0/exactly/selectors/0"
TIME_SLICED = {"driver": "gpu.nvidia.com", "parameters": {"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing"}}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "0a1b2c3d-0000-4000-8000-00000000f0f0", "controller": True}

REFUSED: dict[str, tuple[Raw, str]] = {
    "a way by another vendor's class": (claim(first_of(exactly(), exactly("gpu.amd.com"))), "BERTH-126"),
    "a way by a class of slices": (claim(first_of(exactly(), exactly("mig.nvidia.com"))), "BERTH-126"),
    "the last of eight ways by a class that nobody knows": (claim(first_of(*[exactly()] * 7, exactly("acme"))), "BERTH-126"),
    "a class that nobody knows": (claim(exactly("acme")), "BERTH-126"),
    "a driver of which no model is known": (claim(exactly("tpu.google.com")), "BERTH-126"),
    "no class at all": (claim({"name": "gpu", "exactly": {}}), "BERTH-126"),
    "a class at the place that it had before": (claim({"name": "gpu", "deviceClassName": "gpu.amd.com"}), "BERTH-126"),
    "all that there are": (claim(exactly(count=None, allocationMode="All")), "BERTH-111"),
    "all, in the last way": (claim(first_of(exactly(), exactly(count=None, allocationMode="All"))), "BERTH-111"),
    "a mode that nobody knows yet": (claim(exactly(count=None, allocationMode="AtMost")), "BERTH-111"),
    "a mode that nobody knows yet, with a count": (claim(exactly(allocationMode="AtLeast")), "BERTH-111"),
    "requests that add up": (claim(*[exactly(count=1)] * 5), "BERTH-111"),
    "a count that is no number": (claim({"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": "1"}}), "BERTH-111"),
    "devices that others hold": (claim(exactly(adminAccess=True)), "BERTH-116"),
    "every taint tolerated": (claim(exactly(tolerations=[{"operator": "Exists"}])), "BERTH-131"),
    "a taint tolerated in one way": (
        claim(first_of(exactly(), exactly(tolerations=[{"key": "maintenance", "operator": "Exists"}]))),
        "BERTH-131",
    ),
    "no room for what is required": (claim(saying(*MANY[:32])), "BERTH-127"),
    "room for a part of what is required": (claim(saying(*MANY[:31])), "BERTH-127"),
    "no room in one way": (claim(first_of(exactly(), saying(*MANY[:32]))), "BERTH-127"),
    "a claim as if kube-scheduler had made it": (with_metadata(claim(exactly(count=8)), annotations={EXTENDED: "true"}), "BERTH-111"),
    "a claim as if it were generated": (
        with_metadata(claim(exactly(count=8)), annotations={"resource.kubernetes.io/pod-claim-name": "gpu"}, ownerReferences=[OWNER]),
        "BERTH-111",
    ),
    "a claim with an allocation of its own": (
        {**claim(exactly(count=8)), "status": {"allocation": {"devices": {"results": []}}}},
        "BERTH-111",
    ),
    "another request beside one of network cards": (claim(exactly("nics", count=64), exactly("gpu.amd.com")), "BERTH-126"),
    "a template of many": (claim(exactly(count=8), template=True), "BERTH-111"),
    "an older version": (claim({"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 8}, api="v1beta1"), "BERTH-111"),
    "an older version, with a way": (claim(first_of(exactly(), exactly(count=8)), api="v1beta1"), "BERTH-111"),
}
CONFINED: dict[str, Raw] = {
    "an honest one": claim(exactly()),
    "a template": claim(exactly(), template=True),
    "an older version": claim({"name": "gpu", "deviceClassName": "gpu.nvidia.com"}, api="v1beta1"),
    "a selector of everything": claim(saying("true || false")),
    "what is required, or anything": claim(saying(f"{FAMILY} || true", f"true || {TYPE}")),
    "what is required, in a comment": claim(saying(f"true // {FAMILY}", f"true // && {TYPE}")),
    "what is required, as a text": claim(saying(f"'{FAMILY}' != ''")),
    "what is required, turned round": claim(saying(f"!({FAMILY})")),
    "what is required, where it is not asked": claim(saying(f"true ? true : {FAMILY}")),
    "what is required, with one space more": claim(saying(FAMILY.replace(" in ", "  in "), f"{TYPE} ")),
    "what is required of another driver": claim(saying(FAMILY.replace('driver == "gpu.nvidia.com"', 'driver == "gpu.amd.com"'))),
    "what is required of another domain": claim(saying(FAMILY.replace('attributes["gpu.nvidia.com"]', 'attributes["mine.example.com"]'))),
    "a longer list, written as policies write it": claim(saying(FAMILY.replace('["Hopper"]', '["Hopper", "Turing"]'))),
    "letters as escapes": claim(saying(FAMILY.replace("Hopper", "\\u0048opper"))),
    "another type, written as policies write it": claim(saying(TYPE.replace('["gpu", "vfio"]', '["gpu", "mig", "vfio"]'))),
    "in one way alone": claim(first_of(saying(FAMILY, TYPE), exactly(), saying("true"))),
    "selectors that are no texts": claim(saying(None, 7)),
    "a selector of a kind that is not known yet": claim(exactly(selectors=[{"cue": {"expression": FAMILY}}])),
    "selectors as long as they may be": claim(saying(*("true".ljust(cel.LONGEST) for _ in range(30)))),
    "what policies wrote, said to be there": with_metadata(
        claim(exactly()),
        annotations={"berth.dev/applied": f'[{{"path": "{PLACE}", "is": "{0:064}", "rule": "device_selectors"}}]'},
    ),
    "a constraint on the architecture": with_spec(claim(exactly(count=2)), constraints=CONSTRAINED),
    "architectures that must differ": with_spec(claim(exactly(count=2)), constraints=DISTINCT),
    "an attribute of the claim's own, called as the driver's": with_spec(
        claim(exactly(derivedAttributes=[{"name": "gpu.nvidia.com/architecture", "expression": '"Hopper"'}])), constraints=CONSTRAINED
    ),
    "a part of a device's capacity": claim(exactly(capacity={"requests": {"memory": "1Gi"}})),
    "a class of any type": claim(exactly("any.nvidia")),
    "a class that selects another model": claim(exactly("h100")),
    "a configuration of the driver": with_spec(claim(exactly()), config=[{"requests": ["gpu"], "opaque": TIME_SLICED}]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_asks_for_more_is_refused(name: str) -> None:
    """With the code of what is wrong, and nothing is written."""
    made, code = REFUSED[name]
    verdict = judged(made)
    assert code in {violation.code for violation in verdict.violations}, verdict
    assert verdict.patch == ()


@pytest.mark.parametrize("name", CONFINED)
def test_what_is_admitted_is_confined(name: str) -> None:
    """Each way to meet the claim ends with what is required, whatever stands before it."""
    made = CONFINED[name]
    verdict = judged(made)
    assert verdict.violations == ()
    edited = apply_patch(copy.deepcopy(made), verdict.patch)
    for one in device_requests.written(edited["kind"], edited):
        assert {FAMILY, TYPE} <= set(device_requests.expressions(one.value))
    assert judging.judge(ClaimRequest(kind=made["kind"], made=edited, phase="validate"), FACTS).violations == ()
    assert judging.judge(ClaimRequest(kind=made["kind"], made=made, phase="validate"), FACTS).violations


def test_nobody_is_believed_to_be_the_scheduler() -> None:
    """What it makes has its devices chosen already; of anybody else the same claim is confined."""
    made = with_metadata(claim(exactly()), annotations={EXTENDED: "true"})
    assert judged(made, user="system:kube-scheduler").edits == ()
    assert len(judged(made, user="system:serviceaccount:kube-system:kube-scheduler").edits) == 2


def test_access_for_administrators_gets_what_is_required_too() -> None:
    """Where nothing is counted and sharing is not required, it is no more than the devices that are allowed."""
    facts = facts_of({"families": {"in": ["hopper"]}})
    assert [edit.value["cel"]["expression"] for edit in judged(claim(exactly(adminAccess=True)), facts).edits] == [FAMILY]


# --- classes -----------------------------------------------------------------------------------------------------------

OF_NICS = "device.driver == 'dra.net'"
OF_EVERYTHING = {
    "a comparison": f"(false && {OF_NICS} && true) == false",
    "a macro": f"![1].exists(x, true && {OF_NICS} && true)",
    "a macro, without a negation": f"[1].exists(x, true && {OF_NICS} && x == 2) == false",
    "an argument": f"has(device.attributes['a'].b) == (true && {OF_NICS} && false)",
    "a comment": f"true // && {OF_NICS}",
    "a text": f"device.driver != ' && {OF_NICS} && '",
    "a long text": f'"""" && {OF_NICS} && """" != ""',
    "a raw text": f"r'\\' && {OF_NICS} && r'\\' != ''",
    "an index": f"[true && {OF_NICS} && true][0] == false",
    "an alternative": f"{OF_NICS} || true",
}


def selecting(*texts: str) -> DeviceClass:
    selectors = [{"cel": {"expression": text}} for text in texts]
    return device_requests.device_class({"kind": "DeviceClass", "metadata": {"name": "odd"}, "spec": {"selectors": selectors}})


@pytest.mark.parametrize("how", OF_EVERYTHING)
def test_a_class_of_everything_is_none_of_network_cards(how: str) -> None:
    """A driver that stands where nothing is demanded by it names no driver: the devices count, and satisfy no list."""
    facts = facts_of(REQUIRE, {"odd": selecting(OF_EVERYTHING[how])})
    codes = {violation.code for violation in judged(claim(exactly("odd", count=8)), facts).violations}
    assert codes == {"BERTH-111", "BERTH-126"}


@pytest.mark.parametrize("text", [OF_NICS, f"({OF_NICS})", f"(({OF_NICS} && true))", f"true && ({OF_NICS} && (1 < 2)) && has(device.x)"])
def test_a_class_of_network_cards_is_one(text: str) -> None:
    """In brackets, and beside other demands."""
    assert selecting(text).driver == "dra.net"


def test_a_class_of_deep_brackets_is_read_in_time() -> None:
    """Its driver is not found beyond a few of them, whatever stands inside: by no recursion, nor by each again."""
    for text in ("(" * 5000 + OF_NICS + ")" * 5000, "(true && " * 1000 + OF_NICS + ")" * 1000, "(true) && (" * 900, "'" * 9999):
        assert selecting(text).driver == ""


def test_a_class_that_changes_afterwards_gives_nothing_else() -> None:
    """The driver stands in each selector, so a class of other devices under the same name satisfies none."""
    edits = judged(claim(exactly())).edits
    assert all('device.driver == "gpu.nvidia.com"' in edit.value["cel"]["expression"] for edit in edits)


def test_what_a_class_gives_out_is_judged_as_it_is_now() -> None:
    """The same claim is refused once its class selects slices."""
    now = {**CLASSES, "gpu.nvidia.com": DeviceClass("gpu.nvidia.com", "", (("gpu.nvidia.com/type", "mig"),), True)}
    assert judged(claim(exactly())).violations == ()
    assert {violation.code for violation in judged(claim(exactly()), facts_of(REQUIRE, now)).violations} == {"BERTH-126"}
