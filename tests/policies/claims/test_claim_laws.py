"""``docs/laws.md``, laws 3 to 6 and 10, on random claims under random policies.

Law 3 is "edits are minimal", law 4 "repetition and order change nothing", law 5 "team policies only tighten",
law 6 "audit runs the same code", law 10 "guardrails hold for every author".
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import jsonpatch
import pytest

from policies.claims import claim_verdict
from policies.claims.claim_request import ClaimRequest
from policies.facts import device_requests
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Verdict
from tests.reference import claims as reference
from tests.support.cases.golden import catalog_with
from tests.support.claims import random_claims
from tests.support.claims.random_claims import ACCELERATORS, any_claim, facts_of, policies
from tests.support.counts import count

Raw = dict[str, Any]
CATALOG = catalog_with()
PATHS = re.compile(
    r"/metadata(/annotations(/berth\.dev~1applied)?)?|(/spec){1,2}/devices/requests/\d+(/exactly|/firstAvailable/\d+)?/selectors(/-)?"
)
NUMBER = count(120, 20_000)


def judged(made: Raw, facts: NamespaceFacts, phase: str = "mutate") -> Verdict:
    request = ClaimRequest(user="alice", kind=made["kind"], made=made)
    return claim_verdict.evaluate_claim(request if phase == "mutate" else replace(request, phase="validate"), facts)


def patched(made: Raw, verdict: Verdict) -> Raw:
    result: Raw = jsonpatch.apply_patch(copy.deepcopy(made), copy.deepcopy(list(verdict.patch)))
    return result


def texts(made: Raw) -> list[tuple[str, ...]]:
    return [device_requests.expressions(one.value) for one in device_requests.written_requests(made["kind"], made)]


def worlds(seed: int, **shape: Any) -> Iterator[tuple[Random, list[Raw], NamespaceFacts, Raw]]:
    random = Random(seed)
    for _ in range(NUMBER // 4):
        given = policies(random, **shape)
        facts = facts_of(random, CATALOG, given)
        for _ in range(4):
            yield random, given, facts, any_claim(random)


def test_a_second_call_changes_nothing_and_validate_admits_what_was_written() -> None:
    """mutate(mutate(c)) == mutate(c), with its record; what a reinvoked webhook sees, and what the API server stores."""
    written = 0
    for _, _, facts, made in worlds(1, modes=("Enforce", "Enforce", "Audit")):
        verdict = judged(made, facts)
        if verdict.violations:
            continue
        edited = patched(made, verdict)
        again = judged(edited, facts)
        assert (again.patch, again.edits, again.violations) == ((), (), ()), (made, again)
        assert judged(edited, facts, "validate").violations == ()
        written += bool(verdict.edits)
    assert written > NUMBER / 20


def test_the_order_of_policies_never_matters() -> None:
    """The same bytes."""
    for random, given, facts, made in worlds(2, modes=("Enforce", "Audit", "Warn")):
        verdict, other = judged(made, facts), judged(made, facts_of(random, CATALOG, given))
        assert json.dumps(list(verdict.patch)) == json.dumps(list(other.patch))
        assert list(map(str, (*verdict.violations, *verdict.remarks))) == list(map(str, (*other.violations, *other.remarks)))
        assert verdict.audit_outcomes == other.audit_outcomes


def test_only_selectors_are_added_and_everything_else_survives() -> None:
    """At the end of their list; the author's stand first, to the letter, and no other byte of the object changes."""
    for _, _, facts, made in worlds(3):
        before = copy.deepcopy(made)
        verdict = judged(made, facts)
        edited = patched(made, verdict)
        assert made == before
        assert all(PATHS.fullmatch(operation["path"]) for operation in verdict.patch), verdict.patch
        assert all(op["op"] != "remove" or op["path"].endswith("applied") for op in verdict.patch)
        for old, new in zip(texts(made), texts(edited), strict=True):
            assert new[: len(old)] == old
        assert without(edited) == without(made)


def without(made: Raw) -> Raw:
    """The object without selectors and the record."""
    found = copy.deepcopy(made)
    for one in device_requests.written_requests(found["kind"], found):
        assert isinstance(one.value, dict)
        one.value.pop("selectors", None)
    annotations = found["metadata"].pop("annotations", {})
    annotations.pop("berth.dev/applied", None)
    return found | {"metadata": found["metadata"] | ({"annotations": annotations} if annotations else {})}


def test_a_policy_more_only_tightens() -> None:
    """What is admitted under more policies is admitted under fewer, as it was written under more; and no device more passes."""
    tried = 0
    random = Random(4)
    for _ in range(NUMBER):
        some, more = policies(random, defaults=False, name="c"), policies(random, defaults=False, name="n")
        made = any_claim(random)
        under, over = facts_of(random, CATALOG, some), facts_of(random, CATALOG, [*some, *more])
        verdict = judged(made, over)
        if verdict.violations:
            continue
        edited = patched(made, verdict)
        assert judged(edited, over, "validate").violations == ()
        assert judged(edited, under, "validate").violations == (), (some, more, edited)
        tried += bool(verdict.edits)
    assert tried > NUMBER / 40


def test_what_is_asked_for_besides_never_helps() -> None:
    """Of a claim and the same with one request more, or one way more to meet a request, the larger is denied wherever the smaller is."""
    denied = 0
    for random, _, facts, made in worlds(7):
        larger = copy.deepcopy(made)
        spec = larger["spec"].get("spec", larger["spec"])
        asked = spec["devices"]["requests"]
        ways = [one["firstAvailable"] for one in asked if "firstAvailable" in one]
        more = random_claims.way(random, ACCELERATORS)
        if ways and random.random() < 0.5:
            random.choice(ways).append({"name": "more", **more})
        else:
            asked.append({"name": "more", **more} if made["apiVersion"].endswith("v1beta1") else {"name": "more", "exactly": more})
        codes = {violation.code for violation in judged(made, facts).violations}
        assert codes <= {violation.code for violation in judged(larger, facts).violations}, (made, larger)
        denied += bool(codes)
    assert denied > 0


def test_a_device_that_passes_is_one_that_is_required_and_no_other_is_kept_away() -> None:
    """By the reference: what passes the selectors is allowed by every policy, as far as the driver can say it (of a list of what is not
    wanted, some names may be missing); a device that all allow, and that no selector of the author's or of a default is about, passes."""
    random, passed, kept = Random(5), 0, 0
    gpus = [gpu for gpu in CATALOG.gpus if gpu.vendor in CATALOG.dra_drivers.values()]
    for _ in range(NUMBER):
        given = policies(random, defaults=False, more=False)
        facts = facts_of(random, CATALOG, given)
        name = random.choice(ACCELERATORS)
        made = any_claim(random, (name,))
        verdict = judged(made, facts)
        if verdict.violations:
            continue
        edited = patched(made, verdict)
        unsaid = {field for remark in verdict.remarks if remark.code == "BERTH-242" for field in remark.fields}
        for gpu in random.sample(gpus, 8):
            device = random_claims.device(random, gpu, CATALOG, "d")
            if device is None or CATALOG.dra_drivers[device["driver"]] != facts.snapshot.class_vendor(name):
                continue
            shared = "MIG" if device["attributes"].get("type", {}).get("string") == "mig" else "Exclusive"
            rules = [
                {
                    field: value
                    for field, value in policy["spec"]["require"].items()
                    if (id_of(policy), f"spec.require.{field}") not in unsaid
                }
                for policy in given
            ]
            right = all(reference.allowed(rule, gpu, shared) for rule in rules)
            allowed = all(reference.allowed(policy["spec"]["require"], gpu, shared) for policy in given)
            for old, new in zip(texts(made), texts(edited), strict=True):
                through = all(reference.passes(text, device) for text in new)
                assert right or not through, (rules, new, device)
                if allowed and not any(text in random_claims.AUTHORS for text in old):
                    assert through, (rules, new, device)
                passed, kept = passed + through, kept + (not through)
    assert passed > NUMBER / 4
    assert kept > NUMBER / 4


def id_of(policy: Raw) -> str:
    metadata = policy["metadata"]
    return f"GPUPolicy/{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else f"ClusterGPUPolicy/{metadata['name']}"


@pytest.mark.parametrize("mode", ["Audit", "Warn"])
def test_what_a_policy_would_do_is_what_it_does(mode: str) -> None:
    """The patch that is reported of one policy in Audit or Warn is the one that Enforce gives."""
    for random, given, facts, made in worlds(6, modes=("Enforce", mode)):
        for outcome in judged(made, facts).audit_outcomes:
            switched = [{**p, "spec": {**p["spec"], "mode": "Enforce"}} if id_of(p) == outcome.policy else p for p in given]
            then = judged(made, facts_of(random, CATALOG, switched))
            assert outcome.patch == then.patch
            assert {v.key for v in outcome.violations} <= {v.key for v in then.violations}
