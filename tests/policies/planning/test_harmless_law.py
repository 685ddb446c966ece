"""``docs/laws.md``, law 11 ("defaults never harm"), on random worlds and pods: what it leaves alone, and what it tells."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import jsonpatch
from hypothesis import given

from policies.engine import evaluate
from policies.pods.fractions import SHARED_BY_NAME, SHARING_WORDS
from policies.policy import MachineFields, Policy
from policies.rules.checkpoint_grace import DEFAULT, FLOOR
from policies.rules.mig_resources import SLICE
from policies.rules.node_affinity.remarks import PLACE
from policies.verdict import Edit, Verdict
from tests.support.generators.random_worlds import World, catalog, with_policies
from tests.support.generators.strategies import Case, cases, examples, hostile

Raw = dict[str, Any]
PARTS = (*((name, "") for name in SHARED_BY_NAME), *(("", f"{word}x") for word in SHARING_WORDS))
"""(resource name, annotation): how a pod that asks for a GPU gets a part of one"""


def judged(case: Case, world: World | None = None, pod: Raw | None = None, phase: Any = "mutate") -> Verdict:
    request = replace(case.request, phase=phase, pod=pod or case.request.pod)
    return evaluate(request, (world or case.world).snapshot.facts_for(request.namespace))


def shared(case: Case) -> Case:
    """The same pod with a whole GPU, and one of the ways to get a part of it: which one, its size decides."""
    pod = copy.deepcopy(case.request.pod)
    name, key = PARTS[len(repr(pod)) % len(PARTS)]
    amounts = {"nvidia.com/gpu": "1"} | ({name: "1"} if name else {})
    pod["spec"]["containers"][0]["resources"] = {"limits": dict(amounts), "requests": dict(amounts)}
    annotations = {k: v for k, v in (pod["metadata"].get("annotations") or {}).items() if not k.startswith("berth.dev/")}
    pod["metadata"]["annotations"] = annotations | ({key: "0.5"} if key else {})
    return replace(case, request=replace(case.request, pod=pod))


def without_places(policy: Policy) -> Policy:
    """Less every default that chooses nodes."""
    default = replace(policy.default, node_template=None, machine=MachineFields(), capacity=(), long_runs=None, mig=None)
    return replace(policy, default=default)


def places(verdict: Verdict) -> list[tuple[Any, ...]]:
    """Affinity, resource names and tolerations that are written, whoever asked."""
    return [(e.op, e.path, e.value) for e in verdict.edits if e.rule in ("node_affinity", "mig_resources", "tolerations")]


@examples(25, 10_000)
@given(cases())
def test_no_default_chooses_nodes_for_a_part_of_a_gpu(case: Case) -> None:
    """By HAMi's, KAI's, Run:ai's and Volcano's words: renamed is nothing, and what is written is what is required alone."""
    one = shared(case)
    alone = with_policies(case.world, [without_places(policy) for policy in case.world.policy_set.policies])
    verdict = judged(one)
    assert places(verdict) == places(judged(one, alone))
    assert not [e for e in verdict.edits if e.rule == "mig_resources"]
    assert not [r for r in verdict.remarks if r.code in (SLICE, PLACE)]


def grace_edit(verdict: Verdict) -> Edit | None:
    return next((e for e in verdict.edits if e.path == ("spec", "terminationGracePeriodSeconds")), None)


@examples(25, 10_000)
@given(cases())
def test_a_grace_that_somebody_wrote_is_raised_by_a_floor_alone(case: Case) -> None:
    """A default raises 30 and nothing written; never past a maximum, nor past what every platform in force grants."""
    verdict = judged(case)
    edit, former = grace_edit(verdict), case.request.pod["spec"].get("terminationGracePeriodSeconds", DEFAULT)
    if edit is None:
        return
    matched = [p for p in case.world.policy_set.policies if p.id in verdict.matched]
    remarks = [r for r in verdict.remarks if r.code == FLOOR]
    assert edit.value > former
    assert all(p.require.grace_max is None or edit.value <= p.require.grace_max for p in matched)
    if remarks:
        assert edit.policies == remarks[0].policies
        assert edit.value == max(p.require.grace_min or 0 for p in matched) or edit.value == DEFAULT + 1
    else:
        assert former == DEFAULT
        assert edit.value <= max(p.default.grace or 0 for p in matched)
        caps = [c for c in catalog().grace_caps if c.capacity is None]
        grants = [[c.seconds for c in caps if platform in c.platforms] for platform in case.world.platforms]
        assert not grants or not all(grants) or edit.value <= max(min(seconds) for seconds in grants)


@examples(25, 10_000)
@given(hostile())
def test_a_floor_only_tightens(drawn: tuple[Case, tuple[Policy, ...]]) -> None:
    """What a namespace requires at least takes nothing of what the cluster does: whom both admit, the cluster alone admits."""
    case, own = drawn
    floors = [replace(policy, require=replace(policy.require, grace_min=900, grace_max=None)) for policy in own]
    both = with_policies(case.world, [*case.world.policy_set.policies, *floors])
    final = jsonpatch.apply_patch(copy.deepcopy(case.request.pod), copy.deepcopy(list(judged(case, both).patch)))
    if not judged(case, both, final, "validate").violations:
        assert judged(case, pod=final, phase="validate").violations == ()


@examples(25, 10_000)
@given(cases())
def test_a_slice_is_told_to_whom_it_was_given(case: Case) -> None:
    """By a default: of each rename, once, and of none that the author asked for."""
    verdict = judged(case)
    renamed = [e for e in verdict.edits if e.rule == "mig_resources"]
    asked = str((case.request.pod["metadata"].get("annotations") or {}).get("berth.dev/mig-slice", "")).endswith("gb")
    remarks = [r for r in verdict.remarks if r.code == SLICE]
    assert len(remarks) == (1 if renamed and not asked else 0)
    assert all(r.policies == renamed[0].policies for r in remarks)
