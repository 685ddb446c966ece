"""Claims by somebody who wants a device that policies do not allow, or more of them: each is denied with its code, or has what is
required at the end of every way to meet it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from kube.tree import apply_patch
from policies.claims import claim_verdict
from policies.claims.claim_request import EXTENDED, ClaimRequest
from policies.engine import evaluate
from policies.facts import device_requests
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass, RequestChoice
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Verdict
from tests.support import snapshots
from tests.support.cases.golden import catalog_with, policies_of
from tests.support.claims.attacks import CONFINED, DENIED, FAMILY, REQUIRE, TYPE, with_metadata
from tests.support.claims.random_claims import CLASSES
from tests.support.generators.written_claims import claim, exactly

Raw = dict[str, Any]
CATALOG = catalog_with()


def facts_of(require: Raw, classes: Mapping[str, DeviceClass] = CLASSES, gpus: Raw | None = None, claims: Any = None) -> NamespaceFacts:
    spec = {"mode": "Enforce", "require": require, **({"match": {"gpus": gpus}} if gpus else {})}
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "guard"}, "spec": spec}
    built = snapshots.build(policies_of([policy], CATALOG), CATALOG, platforms=("gfd",))
    return built.with_facts(ClusterFacts(device_classes=classes, claims=claims or {})).facts_for("ml")


FACTS = facts_of(REQUIRE)


def judged(made: Raw, facts: NamespaceFacts = FACTS, user: str = "mallory") -> Verdict:
    return claim_verdict.evaluate_claim(ClaimRequest(user=user, kind=made["kind"], made=made), facts)


@pytest.mark.parametrize("name", DENIED)
def test_what_asks_for_more_is_denied(name: str) -> None:
    """With the code of what is wrong, and nothing is written."""
    made, code = DENIED[name]
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
    for one in device_requests.written_requests(edited["kind"], edited):
        assert {FAMILY, TYPE} <= set(device_requests.expressions(one.value))
    assert claim_verdict.evaluate_claim(ClaimRequest(kind=made["kind"], made=edited, phase="validate"), FACTS).violations == ()
    assert claim_verdict.evaluate_claim(ClaimRequest(kind=made["kind"], made=made, phase="validate"), FACTS).violations


def test_a_policy_for_pods_of_several_gpus_is_for_claims_of_as_many() -> None:
    """A claim of one is not held to it; one that may be of several is."""
    facts = facts_of(REQUIRE, gpus={"min": 2})
    assert judged(claim(exactly()), facts) == Verdict()
    assert judged(claim(exactly(count=2)), facts).edits
    assert judged(claim(exactly(), {**exactly(), "name": "more"}), facts).edits
    assert judged(claim(exactly(allocationMode="All")), facts).matched


@pytest.mark.parametrize(
    ("require", "claims", "limits", "code"),
    [
        ({"families": {"in": ["hopper"]}}, ("one", "one"), {}, "BERTH-127"),
        ({"families": {"in": ["hopper"]}}, ("one",), {"nvidia.com/gpu": "1"}, "BERTH-127"),
        ({"families": {"in": ["hopper"]}}, ("two",), {}, None),
        ({"families": {"in": ["hopper"]}}, ("one",), {}, None),
        ({"sharing": ["Exclusive"]}, ("one", "one"), {}, None),
        ({"sharing": ["MIG"]}, ("one", "one"), {}, "BERTH-127"),
        ({"protection": {"max": "1h"}}, ("one", "one"), {}, None),
    ],
)
def test_a_pod_of_several_gpus_has_them_in_one_claim(require: Raw, claims: tuple[str, ...], limits: Raw, code: str | None) -> None:
    """Where a policy for such pods says what a claim has to say, which claims of one GPU were not held to."""
    one = (RequestChoice("gpu.nvidia.com"),)
    known = {("ResourceClaimTemplate", "ml", "one"): (one,), ("ResourceClaimTemplate", "ml", "two"): (one, one)}
    facts = facts_of(require, gpus={"min": 2}, claims=known)
    named = [{"name": f"c{i}", "resourceClaimTemplateName": name} for i, name in enumerate(claims)]
    pod = {"metadata": {}, "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}], "resourceClaims": named}}
    found = [violation.code for violation in evaluate(Request(namespace="ml", pod=pod), facts).violations if violation.code == "BERTH-127"]
    assert found == ([code] if code else [])


@pytest.mark.parametrize("require", [{"families": {"in": ["hopper"]}}, {"gpusPerPod": {"max": 2}}])
def test_a_claim_that_is_not_there_is_awaited(require: Raw) -> None:
    """Whatever the pod would be denied for without it: made a moment ago, it is about to arrive."""
    pod = {"metadata": {}, "spec": {"containers": [{"name": "main"}], "resourceClaims": [{"name": "c", "resourceClaimName": "new"}]}}
    assert evaluate(Request(namespace="ml", pod=pod), facts_of(require)).missing == (("ResourceClaim", "new"),)


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
    """The same claim is denied once its class selects slices."""
    now = {**CLASSES, "gpu.nvidia.com": DeviceClass("gpu.nvidia.com", "", (("gpu.nvidia.com/type", "mig"),), plain=True)}
    assert judged(claim(exactly())).violations == ()
    assert {violation.code for violation in judged(claim(exactly()), facts_of(REQUIRE, now)).violations} == {"BERTH-126"}
