"""Snapshots that follow a cluster decide as one made anew of what acts would, at every step, and cost what has changed."""

from __future__ import annotations

import inspect
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest
from hypothesis import given

import policies
from analysis.conditions import compute_conditions
from kube.pod import PodError
from policies.document import UNREAD
from policies.engine import evaluate
from policies.policy import NodeTemplate, Policy
from policies.request import Request
from policies.state.compilation import MOST_OWN, MOST_OWN_TOLERATIONS
from policies.state.objects import Change, Key, ObjectEntry
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Update, Updater
from policies.verdict import Verdict
from tests.support.counts import count
from tests.support.generators import random_changes, random_worlds
from tests.support.generators.random_changes import Changing
from tests.support.generators.random_cluster import NAMESPACES
from tests.support.generators.strategies import examples, randoms
from tests.support.generators.written_objects import Raw

ONE_PLATFORM = Options(platforms=("karpenter-aws",))
KEY: Key = ("ClusterGPUPolicy", "", "one")


def verdict(request: Request, snapshot: Snapshot, namespace: str) -> Verdict | str:
    try:
        return evaluate(replace(request, namespace=namespace), snapshot.facts_for(namespace))
    except PodError as error:
        return str(error)


def same_decisions(followed: Snapshot, built: Snapshot, pods: list[Request], where: str) -> None:
    for request in pods:
        for namespace in (*NAMESPACES, "fresh"):
            assert verdict(request, followed, namespace) == verdict(request, built, namespace), where


def cluster_policy(spec: Any, uid: str = "u", version: int = 1, status: Any = None) -> dict[Key, Change]:
    """A batch of one ClusterGPUPolicy; with spec ... it has none."""
    value: Raw = {"metadata": {"name": "one", "uid": uid, "generation": version, "resourceVersion": str(version)}}
    return {KEY: {**value, **({} if spec is ... else {"spec": spec}), **({} if status is None else {"status": status})}}


def own_policy(namespace: str, spec: Any, name: str = "own") -> dict[Key, Change]:
    return {("GPUPolicy", namespace, name): {"metadata": {"name": name, "uid": namespace + name}, "spec": spec}}


def node(name: str, labels: dict[str, str]) -> dict[Key, Change]:
    return {("Node", "", name): {"metadata": {"name": name, "labels": labels}}}


def new_updater(options: Options = ONE_PLATFORM) -> Updater:
    return Updater(random_worlds.catalog(), options)


def entry(lived: Update) -> ObjectEntry:
    return lived.entries[KEY]


def requires(lived: Update) -> tuple[str, ...]:
    """The capacity that the one policy requires, () where nothing of it acts."""
    return next((c.policy.require.capacity for c in lived.snapshot.policies), ())


SPOT: Raw = {"mode": "Enforce", "require": {"capacity": ["spot"]}}
RESERVED: Raw = {"mode": "Enforce", "require": {"capacity": ["reserved"]}}
WRONG: Raw = {"mode": "Enforec"}


# --- the law -----------------------------------------------------------------------------------------------------------


@examples(5, 200)
@given(randoms())
def test_every_step_decides_as_made_anew(random: Random) -> None:
    """Whatever comes, changes and goes, wrong or right, in whatever batches: what acts is what should, and it decides so; the snapshot is
    that of what acts field for field."""
    changing = Changing(random, random_changes.options(random))
    followed, pods = new_updater(changing.options), changing.pods(4)
    for number in range(8):
        lived = followed.apply(changing.batch())
        acting = {key: one.acting for key, one in lived.entries.items() if one.acting is not None}
        assert acting == changing.acting, f"batch {number}"
        assert set(lived.entries) == {key for key in changing.there if key in random_changes.OURS}
        assert all(one.stale == (one.acting is not None and bool(one.understood.errors)) for one in lived.entries.values())
        built = changing.built()
        assert plain(lived.snapshot) == plain(built), f"batch {number}"
        same_decisions(lived.snapshot, built, pods, f"batch {number}")


def plain(snapshot: Snapshot) -> dict[str, Any]:
    """All that is decided by, as values that compare."""
    return {
        "tables": {name: (table.offers, table.known, table.values, table.unmaintained) for name, table in snapshot.tables.items()},
        "advertised": snapshot.advertised,
        "policies": [(c.policy, c.mode, c.require, c.require_long, c.machine, c.capacity, c.capacity_long) for c in snapshot.policies],
        "of_cluster": [c.policy for c in snapshot.of_cluster],
        "own": {namespace: [c.policy for c in own] for namespace, own in snapshot.own.items()},
        "templates": dict(snapshot.templates),
        "chosen": {name: [c.id for c in snapshot.facts_for(name).policies] for name in (*NAMESPACES, "fresh")},
        "same": [getattr(snapshot, name) for name in ("placed", "mig_strategy", "queues", "max_mode", "vocabulary", "reads", "by_labels")],
        "facts": [getattr(snapshot.cluster, part) for part in ("namespaces", "nodepool_grace", "nodepools", "device_classes", "claims")],
    }


@examples(5, 200)
@given(randoms())
def test_batches_may_be_cut_anywhere(random: Random) -> None:
    """One by one, or many at once of which the newest counts: with the last good forms told, the end is the same."""
    changing = Changing(
        random, replace(random_changes.options(random), platforms=("karpenter-aws",), mig_strategy="mixed"), good_is_told=True
    )
    changes = [item for _ in range(10) for item in changing.batch().items()]
    ends = []
    for most in (1, 3, len(changes)):
        followed, rest = new_updater(changing.options), list(changes)
        while rest:
            size = random.randint(1, most) if most < len(changes) else most
            lived = followed.apply(dict(rest[:size]))
            rest = rest[size:]
        assert {key: one.acting for key, one in lived.entries.items() if one.acting is not None} == changing.acting
        ends.append(plain(lived.snapshot))
    assert ends[0] == ends[1] == ends[2]


SOURCE = str(Path(policies.__file__).parent)


class Interrupted(MemoryError):
    """Raised where nobody expects it."""


def interrupted(followed: Updater, batch: dict[Key, Change], call: int) -> bool:
    """Apply a batch and raise in the given call of a function; return whether there was such a call."""
    calls = 0

    def trace(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        if not frame.f_code.co_filename.startswith(SOURCE):  # a callback of the garbage collector may come at any time
            return
        calls += 1
        if calls >= call and not frame.f_code.co_flags & inspect.CO_GENERATOR:  # one that is closed may not raise
            sys.settrace(before)
            raise Interrupted

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        followed.apply(batch)
    except Interrupted:
        return True
    finally:
        sys.settrace(before)
    return False


@examples(5, 200)
@given(randoms())
def test_a_batch_that_fails_can_be_applied_again(random: Random) -> None:
    """Wherever an exception comes: nothing of the batch acts, and once it is applied again the snapshot is that of what acts."""
    changing = Changing(random, random_changes.options(random))
    followed, pods = new_updater(changing.options), changing.pods(2)
    followed.apply(changing.batch())
    for number in range(4):
        before, batch = changing.built(), changing.batch()
        for call in sorted(random.sample(range(1, 1500), 3)):
            if not interrupted(followed, batch, call):
                break
            assert plain(followed.apply({}).snapshot) == plain(before), f"batch {number}, call {call}"
        lived = followed.apply(batch)
        assert {key: entry.acting for key, entry in lived.entries.items() if entry.acting is not None} == changing.acting
        built = changing.built()
        assert plain(lived.snapshot) == plain(built), f"batch {number}"
        same_decisions(lived.snapshot, built, pods, f"batch {number}")


# --- only what is touched ----------------------------------------------------------------------------------------------


def fifty() -> tuple[Updater, Update]:
    followed = new_updater()
    changes: dict[Key, Change] = {}
    for number in range(50):
        changes |= own_policy(f"ns-{number % 10}", SPOT, f"p{number}")
    return followed, followed.apply(changes | cluster_policy(SPOT))


def ids(lived: Update) -> dict[str, int]:
    return {c.id: id(c) for c in lived.snapshot.policies}


def test_one_changed_policy_is_compiled_alone() -> None:
    """All others are the very objects that they were, also after one came or went."""
    followed, before = fifty()
    kept = before.snapshot.policies  # so that no id is given again
    name = "GPUPolicy/ns-3/p3"
    after = followed.apply(own_policy("ns-3", RESERVED, "p3"))
    assert (after.added, after.modified, after.removed) == ((), (name,), ())
    assert {one for one in ids(before) if ids(after)[one] != ids(before)[one]} == {name}
    came = followed.apply(own_policy("ns-x", SPOT))
    assert (came.added, came.modified, came.removed) == (("GPUPolicy/ns-x/own",), (), ())
    assert ids(came).items() > ids(after).items()
    gone = followed.apply({("GPUPolicy", "ns-x", "own"): None, ("GPUPolicy", "ns-3", "p3"): None})
    assert gone.removed == (name, "GPUPolicy/ns-x/own")
    assert ids(gone) == {one: at for one, at in ids(before).items() if one != name}
    assert [c.id for c in gone.snapshot.facts_for("ns-x").policies] == ["ClusterGPUPolicy/one"]
    assert len(kept) == 51


def test_what_was_decided_for_others_is_kept() -> None:
    """A policy of one namespace leaves what was worked out for all as it is; with a template it holds no more."""
    followed, before = fifty()
    other = before.snapshot.facts_for("ns-4").scope
    after = followed.apply(own_policy("ns-3", RESERVED, "p3"))
    assert after.decisions_hold
    assert after.snapshot.merged is before.snapshot.merged
    assert after.snapshot.facts_for("ns-4").scope == other
    assert after.snapshot.facts_for("ns-3").scope not in (other, before.snapshot.facts_for("ns-3").scope)
    template: dict[Key, Change] = {("GPUNodeTemplate", "", "t"): {"metadata": {"name": "t"}, "spec": {"labels": {"a": "b"}}}}
    with_it = followed.apply(template)
    assert not with_it.decisions_hold
    assert with_it.snapshot.merged is not before.snapshot.merged
    assert with_it.snapshot.vocabulary.template == {"a"}
    assert followed.apply(dict.fromkeys(template)).snapshot.vocabulary == before.snapshot.vocabulary


@pytest.mark.parametrize(
    "change",
    [
        {("ClusterGPUPolicy", "", "x"): {"metadata": {"name": "x"}, "spec": {"require": {"instanceFamilies": {"in": ["x9"]}}}}},
        {("GPUNodeTemplate", "", "t"): {"metadata": {"name": "t"}, "spec": {"gpus": {"sharing": ["TimeSliced"]}, "labels": {"a": "b"}}}},
    ],
    ids=["a family that is new", "a template that shares"],
)
def test_what_changes_the_tables_compiles_all(change: dict[Key, Change]) -> None:
    """Sets of the old tables would mean other nodes; gone again, the tables are as they were."""
    followed, before = fifty()
    kept, rows = before.snapshot.policies, [table.all for table in before.snapshot.tables.values()]
    after = followed.apply(change)
    assert not set(ids(after).values()) & set(ids(before).values())
    assert [table.all for table in after.snapshot.tables.values()] > rows
    again = followed.apply({**change, **dict.fromkeys(change)})
    assert [table.all for table in again.snapshot.tables.values()] == rows
    assert len(kept) == 51


def test_what_a_team_names_compiles_nothing_of_others() -> None:
    """An instance family that only a namespace's own policy knows is no machine: rows are everybody's."""
    followed, before = fifty()
    after = followed.apply(own_policy("ns-3", {"require": {"instanceFamilies": {"in": ["x9"]}}}, "p3"))
    assert after.snapshot.tables is before.snapshot.tables
    others = ids(before).keys() - {"GPUPolicy/ns-3/p3"}
    assert {name: ids(after)[name] for name in others} == {name: ids(before)[name] for name in others}


def test_rows_for_new_families_are_bounded() -> None:
    """Of a thousand that one policy names, 64 get rows."""
    followed = new_updater()
    spec = {"require": {"instanceFamilies": {"notIn": [f"x{i}" for i in range(256)]}}}
    lived = followed.apply({("ClusterGPUPolicy", "", "x"): {"metadata": {"name": "x"}, "spec": spec}})
    assert not lived.denied
    for table in lived.snapshot.tables.values():
        assert len({offer.host.family for offer in table.offers} & {f"x{i}" for i in range(256)}) in (0, 64)


@pytest.mark.parametrize(
    "change",
    [
        cluster_policy(SPOT, version=2, status={"where": "all namespaces"}),
        cluster_policy({"require": {"capacity": ["spot"]}, "mode": "Enforce"}, version=2),
        cluster_policy({**SPOT, "match": {}}, version=2),
        {("GPUPolicy", "nowhere", "p"): None, ("Node", "", "n"): None, ("Namespace", "", "n"): None, ("GPUNodeTemplate", "", "t"): None},
        {("Pod", "a", "b"): {"metadata": {"name": "b"}}, ("ConfigMap", "a", "b"): None},
        {("GPUPolicy", "a", "wrong"): {"metadata": {"name": "wrong"}, "spec": WRONG}},
        {},
    ],
    ids=[
        "status",
        "the order of keys",
        "the same said otherwise",
        "unknown ones gone",
        "other kinds",
        "what is wrong from the start",
        "nothing",
    ],
)
def test_what_decides_nothing_changes_nothing(change: dict[Key, Change]) -> None:
    """The snapshot is the very one before, so that nothing is swapped; the entries know the newest version."""
    followed, before = fifty()
    after = followed.apply(change)
    assert (after.changed, after.snapshot is before.snapshot) == (False, True)
    assert (after.added, after.modified, after.removed) == ((), (), ())
    assert entry(after).resource_version == ("2" if KEY in change else "1")


def test_a_node_that_only_lives_changes_nothing() -> None:
    """Its status comes every few minutes; a label that is read is news."""
    followed = new_updater()
    before = followed.apply(node("n", {"karpenter.sh/capacity-type": "spot", "zone": "a"}))
    assert before.changed
    assert not followed.apply(node("n", {"karpenter.sh/capacity-type": "spot", "zone": "b"})).changed
    assert followed.apply(node("n", {"karpenter.sh/capacity-type": "on-demand"})).changed


def test_a_namespaces_labels_choose_anew_for_it_alone() -> None:
    """Who is in whose scope is found again for the namespace that has other labels, and for all where the cluster's policies change."""
    followed = new_updater()
    chosen = {**SPOT, "match": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}
    named: dict[Key, Change] = {("Namespace", "", name): {"metadata": {"name": name, "labels": {"team": name}}} for name in "ab"}
    before = followed.apply(cluster_policy(chosen) | named).snapshot
    assert [len(before.facts_for(name).policies) for name in "ab"] == [1, 0]
    moved = followed.apply({("Namespace", "", "b"): {"metadata": {"name": "b", "labels": {"team": "a"}}}}).snapshot
    assert moved.selected.keys() == {"a"}
    assert [len(moved.facts_for(name).policies) for name in "ab"] == [1, 1]
    gone = followed.apply({("Namespace", "", "a"): None}).snapshot
    assert (gone.facts_for("a").policies, gone.knows("a")) == ((), False)
    assert len(followed.apply(cluster_policy(SPOT)).snapshot.facts_for("a").policies) == 1


def test_what_is_read_of_a_pod_is_what_some_policy_reads() -> None:
    """A policy of the cluster that comes adds to it everywhere, and takes with it what no other reads."""
    followed = new_updater()
    nothing = followed.apply(cluster_policy(SPOT)).snapshot.reads
    selecting = {"match": {"podSelector": {"matchLabels": {"tier": "x"}}}, "default": {"gracePeriod": "1h"}}
    excluding = {**SPOT, "match": {"exclude": {"users": ["anna"]}}, "require": {"requestsEqualLimits": ["cpuAndMemory"]}}
    one = followed.apply(cluster_policy(selecting)).snapshot.reads
    assert (one.labels - nothing.labels, one.parts) == (frozenset({"tier"}), frozenset())
    two = followed.apply(cluster_policy(excluding)).snapshot.reads
    assert (two.labels, two.parts, sorted(two.users)) == (nothing.labels, frozenset({"ordinary"}), ["anna"])
    assert followed.apply(cluster_policy(SPOT)).snapshot.reads == nothing


def test_as_many_tolerations_of_a_namespace_act() -> None:
    """Each of its policies compares what it lists with a pod's: one that lists too much does not act, those behind it do."""
    followed = new_updater()
    many = [{"key": "team", "value": str(number)} for number in range(MOST_OWN_TOLERATIONS)]
    followed.apply(own_policy("a", {"require": {"tolerations": {"forbid": many}}}, "b"))
    followed.apply(own_policy("a", {"default": {"tolerate": [{"key": "team"}]}}, "c"))
    lived = followed.apply(own_policy("a", SPOT, "d"))
    assert [c.policy.name for c in lived.snapshot.own["a"]] == ["b", "d"]
    found = compute_conditions(lived.snapshot, lived.entries, {})
    assert {key[2]: finding.conditions[0].reason for key, finding in found.items()}["c"] == "TooManyPolicies"
    freed = followed.apply({("GPUPolicy", "a", "b"): None}).snapshot
    assert [c.policy.name for c in freed.own["a"]] == ["c", "d"]
    assert freed.with_policies(freed.policies).own == freed.own


def test_forty_policies_of_a_namespace_act() -> None:
    """The first by name, however they came and went; the cluster's act all the same, and the status of the others says why they don't."""
    followed, names = new_updater(), [f"p{number:03}" for number in range(MOST_OWN + 20)]
    for name in reversed(names):
        lived = followed.apply(own_policy("a", SPOT, name))
    facts = followed.apply(cluster_policy(SPOT)).snapshot.facts_for("a")
    assert [c.policy.name for c in facts.policies] == [facts.policies[0].policy.name, *names[:MOST_OWN]]
    assert facts.policies[0].policy.namespace is None
    found = compute_conditions(lived.snapshot, lived.entries, {})
    reasons = {key[2]: finding.conditions[0].reason for key, finding in found.items()}
    assert {reasons[name] for name in names[:MOST_OWN]} == {"Understood"}
    assert {reasons[name] for name in names[MOST_OWN:]} == {"TooManyPolicies"}
    freed = followed.apply({("GPUPolicy", "a", names[0]): None}).snapshot
    assert [c.policy.name for c in freed.own["a"]] == names[1 : MOST_OWN + 1]
    built = freed.with_policies(freed.policies)
    assert built.own == freed.own


def test_what_a_tenant_reads_is_read_in_its_namespace_alone() -> None:
    """Else everybody's decisions would be kept by every tenant's labels; scopes and what is decided elsewhere stay as they are."""
    followed = new_updater()
    before = followed.apply(cluster_policy(SPOT)).snapshot
    selecting = {"match": {"podSelector": {"matchLabels": {"tier": "x"}}}, "require": {"requestsEqualLimits": ["cpuAndMemory"]}}
    after = followed.apply(own_policy("a", selecting)).snapshot
    assert after.facts_for("b").reads is after.reads
    assert (after.reads, after.merged) == (before.reads, before.merged)
    read = after.facts_for("a").reads
    assert (read.labels - after.reads.labels, read.parts) == (frozenset({"tier"}), frozenset({"ordinary"}))
    assert followed.apply({("GPUPolicy", "a", "own"): None}).snapshot.facts_for("a").reads == before.reads


def test_what_is_taken_over_is_bounded() -> None:
    """However many namespaces are asked for, between however many snapshots."""
    followed = new_updater()
    for swap in range(4):
        snapshot = followed.apply(own_policy("a", SPOT if swap % 2 else RESERVED)).snapshot
        for number in range(7_000):
            snapshot.facts_for(f"n-{swap}-{number}")
        assert len(snapshot.selected) <= 20_000


# --- the last good form ------------------------------------------------------------------------------------------------


def test_what_becomes_wrong_acts_on_as_it_was() -> None:
    """It is denied once, however often its status is written; another mistake is told again; a right form acts at once."""
    followed = new_updater()
    followed.apply(cluster_policy(SPOT))
    lived = followed.apply(cluster_policy(WRONG, version=2))
    assert (requires(lived), lived.changed, [one.key for one in lived.denied]) == (("spot",), False, [KEY])
    assert (entry(lived).stale, entry(lived).generation, entry(lived).last_good) == (True, 2, {"generation": 1, "spec": SPOT})
    written = followed.apply(cluster_policy(WRONG, version=2, status={"lastGood": {"generation": 1, "spec": SPOT}}))
    assert (requires(written), written.denied, entry(written).stale) == (("spot",), (), True)
    other = followed.apply(cluster_policy({"modes": 1}, version=3))
    assert (requires(other), len(other.denied)) == (("spot",), 1)
    good = followed.apply(cluster_policy(RESERVED, version=4))
    assert (requires(good), good.denied, entry(good).stale) == (("reserved",), (), False)
    assert entry(good).last_good == {"generation": 4, "spec": RESERVED}


@pytest.mark.parametrize("spec", [..., None, [], "x", 4, WRONG], ids=str)
def test_a_spec_of_any_shape_is_told(spec: Any) -> None:
    """Alone nothing of it acts; after a good form that one does."""
    followed = new_updater()
    first = followed.apply(cluster_policy(spec))
    assert (requires(first), len(first.denied), entry(first).acting, entry(first).last_good) == ((), 1, None, None)
    followed.apply(cluster_policy(SPOT))
    lived = followed.apply(cluster_policy(spec))
    assert (requires(lived), entry(lived).stale, len(lived.denied)) == (("spot",), True, 1)


@pytest.mark.parametrize("gone_first", [True, False])
def test_what_was_made_anew_and_wrong_does_not_act(*, gone_first: bool) -> None:
    """Another uid is another object, also where its end was never seen."""
    followed = new_updater()
    followed.apply(cluster_policy(SPOT))
    if gone_first:
        assert requires(followed.apply({KEY: None})) == ()
    lived = followed.apply(cluster_policy(WRONG, uid="other"))
    assert (requires(lived), entry(lived).acting, len(lived.denied)) == ((), None, 1)


def test_at_a_start_the_status_knows_the_last_good_form() -> None:
    """It acts as it did for whoever wrote it."""
    lived = new_updater().apply(cluster_policy(WRONG, version=9, status={"lastGood": {"generation": 3, "spec": SPOT, "more": "x" * 99}}))
    assert (requires(lived), entry(lived).stale) == (("spot",), True)
    assert entry(lived).last_good == {"generation": 3, "spec": SPOT}


def test_a_last_good_form_may_come_later() -> None:
    """A replica that starts in between learns of it from the status, as soon as one that knows has written it."""
    followed = new_updater()
    followed.apply(cluster_policy(WRONG))
    lived = followed.apply(cluster_policy(WRONG, version=2, status={"lastGood": {"generation": 1, "spec": SPOT}}))
    assert (requires(lived), entry(lived).stale, lived.added, lived.denied) == (("spot",), True, ("ClusterGPUPolicy/one",), ())


def test_of_two_last_good_forms_the_newer_acts() -> None:
    """Where a right form and a wrong one came in one batch, the right one was in force elsewhere: the status has it."""
    followed = new_updater()
    followed.apply(cluster_policy(SPOT, version=2))
    newer = {"lastGood": {"generation": 3, "spec": RESERVED}}
    assert requires(followed.apply(cluster_policy(WRONG, version=4))) == ("spot",)
    lived = followed.apply(cluster_policy(WRONG, version=4, status=newer))
    assert (requires(lived), lived.modified, entry(lived).last_good) == (("reserved",), ("ClusterGPUPolicy/one",), newer["lastGood"])
    for older in ({"generation": 1, "spec": SPOT}, {"generation": 9, "spec": WRONG}, {"spec": SPOT}, None):
        assert requires(followed.apply(cluster_policy(WRONG, version=4, status={"lastGood": older}))) == ("reserved",)


@pytest.mark.parametrize(
    "good",
    [
        None,
        [],
        "x",
        4,
        {},
        {"spec": WRONG},
        {"spec": None},
        {"spec": []},
        {"generation": 3},
        {"spec": {"labels": {"a": "b"}}},
        [{"spec": SPOT}],
    ],
    ids=str,
)
def test_a_last_good_form_that_is_none_does_not_act(good: Any) -> None:
    """Whatever stands there in its place."""
    lived = new_updater().apply(cluster_policy(WRONG, status={"lastGood": good}))
    assert (requires(lived), entry(lived).acting, entry(lived).stale) == ((), None, False)


@pytest.mark.parametrize("status", [None, [], "x", 4, {"lastGood": {"spec": RESERVED}}], ids=str)
def test_what_is_right_acts_whatever_its_status_is(status: Any) -> None:
    """Its last good form is then what is stored."""
    value: Any = next(iter(cluster_policy(SPOT).values()))
    lived = new_updater().apply({KEY: {**value, "status": status}})
    assert (requires(lived), entry(lived).stale) == (("spot",), False)


UNREAD_WHY = "larger than the 64 KiB that Berth keeps of one object"


def test_what_is_too_large_acts_on_as_it_was() -> None:
    """A policy of which only the name is kept has an error that says why, and its last good form acts, as far as there is one."""
    followed = new_updater()
    followed.apply(cluster_policy(SPOT, version=1))
    for uid, acts in (("u", True), ("other", False)):
        batch = cluster_policy(None, uid=uid, version=2)
        lived = followed.apply({key: {**value, UNREAD: UNREAD_WHY} for key, value in batch.items() if value is not None})
        (entry,) = lived.entries.values()
        assert entry.understood.errors == (f"spec: is {UNREAD_WHY}; shorten it, or delete unused policies and apply it again",)
        assert (entry.stale, len(lived.snapshot.policies)) == (acts, int(acts))


@pytest.mark.parametrize(
    ("require", "code"), [({"gpusPerPod": {"max": 8}}, "BERTH-118"), ({"families": {"in": ["hopper"]}}, "BERTH-126"), (None, "")]
)
def test_of_a_claim_that_is_too_large_the_worst_is_assumed(require: Any, code: str) -> None:
    """Its pod is denied where a policy requires something of devices, with what to do; without one it is admitted."""
    followed = new_updater()
    claim: Raw = {"metadata": {"name": "big", "namespace": "team-a", "uid": "u"}, "spec": None, UNREAD: UNREAD_WHY}
    policy = cluster_policy({"mode": "Enforce", "require": require}) if require else {}
    snapshot = followed.apply({("ResourceClaim", "team-a", "big"): claim, **policy}).snapshot
    container = {"name": "c", "resources": {"claims": [{"name": "gpu"}]}}
    pod = {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "big"}], "containers": [container]}}
    verdict = evaluate(Request(namespace="team-a", user="", pod=pod, phase="validate"), snapshot.facts_for("team-a"))
    assert [violation.code for violation in verdict.violations] == ([code] if code else [])
    for violation in verdict.violations:
        assert 'ResourceClaim "big" is too large for Berth, or there are too many claims' in str(violation)
        assert "shorten it, or delete unused claims in the namespace" in str(violation)


def test_a_template_too_acts_in_its_last_good_form() -> None:
    """What a policy names is still there."""
    followed, key = new_updater(), ("GPUNodeTemplate", "", "t")
    followed.apply({key: {"metadata": {"name": "t"}, "spec": {"labels": {"a": "b"}}}})
    lived = followed.apply({key: {"metadata": {"name": "t"}, "spec": {"labels": {}}}})
    assert (lived.snapshot.templates["t"].template.labels, lived.entries[key].stale) == ((("a", "b"),), True)
    assert not followed.apply({key: None}).snapshot.templates


def test_what_is_nested_too_deep_to_be_compared_is_told() -> None:
    """Nothing of it raises; the last good form acts, and it is denied once."""
    deep: Any = {}
    for _ in range(20_000):
        deep = {"a": deep}
    with pytest.raises(RecursionError):
        json.dumps(deep)
    followed = new_updater()
    followed.apply(cluster_policy(SPOT))
    denied = [len(followed.apply(cluster_policy({"deep": deep}, version=version)).denied) for version in (2, 3)]
    assert denied == [1, 0]
    assert requires(followed.apply({})) == ("spot",)


@pytest.mark.parametrize(
    ("key", "metadata"),
    [
        (("GPUPolicy", "own", "p"), {"name": "p", "namespace": "other"}),
        (("GPUPolicy", "own", "p"), {"name": "q"}),
        (("GPUPolicy", "own", "p"), None),
    ],
)
def test_a_policy_acts_in_the_namespace_that_it_was_found_in(key: Key, metadata: Any) -> None:
    """Whatever its own metadata say: in no other."""
    snapshot = new_updater().apply({key: {"kind": "ClusterGPUPolicy", "metadata": metadata, "spec": SPOT}}).snapshot
    assert [c.id for c in snapshot.facts_for("own").policies] == ["GPUPolicy/own/p"]
    assert snapshot.facts_for("other").policies == ()


# --- platforms as the nodes tell ---------------------------------------------------------------------------------------

AWS = {"karpenter.k8s.aws/instance-gpu-name": "t4", "karpenter.k8s.aws/instance-family": "g4dn", "karpenter.sh/capacity-type": "spot"}
GKE = {"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-accelerator": "nvidia-l4"}
BESIDE_GKE = {"cloud.google.com/gke-nodepool": "a"}


def test_platforms_are_in_force_once_their_nodes_are_seen() -> None:
    """Placement is then written; a platform of GPU nodes stays when they are gone, one without never began for good."""
    followed = new_updater(Options(platforms=("auto",), mig_strategy="auto"))
    first = followed.apply(cluster_policy(SPOT)).snapshot
    assert (first.placed, len(first.tables)) == (False, len(random_worlds.catalog().platforms))
    beside = followed.apply(node("small", BESIDE_GKE)).snapshot
    assert (beside.placed, list(beside.tables)) == (True, ["gke"])
    aws = followed.apply(node("a", AWS)).snapshot
    assert (aws.placed, list(aws.tables)) == (True, ["karpenter-aws"])
    both = followed.apply(node("g", GKE)).snapshot
    assert list(both.tables) == [name for name in random_worlds.catalog().platforms if name in ("karpenter-aws", "gke")]
    gone = followed.apply({("Node", "", name): None for name in ("small", "a", "g")}).snapshot
    assert list(gone.tables) == list(both.tables)
    assert [gone.tables[name].all & c.require[0].rows != 0 for c in gone.policies for name in gone.tables] == [True, True]


def test_a_node_of_a_platform_in_force_compiles_nothing() -> None:
    """Ten thousand of them come and go."""
    followed = new_updater(Options(platforms=("auto",), mig_strategy="auto"))
    before = followed.apply(cluster_policy(SPOT) | node("a", AWS))
    after = followed.apply(node("b", AWS))
    assert after.changed
    assert after.snapshot.policies[0] is before.snapshot.policies[0]
    assert after.decisions_hold


def test_the_mig_strategy_is_as_the_nodes_offer_slices() -> None:
    """Single only where no node is mixed; with none it stays as it was; an explicit one is never changed."""
    single = {**AWS, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/mig.strategy": "single"}
    mixed = {**AWS, "nvidia.com/mig-1g.5gb.count": "7", "nvidia.com/mig.strategy": "mixed"}
    followed, other = new_updater(Options(platforms=("karpenter-aws",), mig_strategy="auto")), new_updater()
    steps: list[tuple[dict[Key, Change], str]] = [
        (node("a", AWS), "mixed"),
        (node("b", single), "single"),
        (node("c", mixed), "mixed"),
        ({("Node", "", "c"): None}, "single"),
        ({("Node", "", "b"): None}, "single"),
        (node("c", mixed), "mixed"),
    ]
    for change, strategy in steps:
        assert followed.apply(change).snapshot.mig_strategy == strategy
        assert other.apply(change).snapshot.mig_strategy == "mixed"


# --- cost --------------------------------------------------------------------------------------------------------------


def test_one_change_costs_a_small_part_of_all() -> None:
    """With a thousand policies in as many namespaces (two hundred in ``make test``): at most a twentieth of the first batch."""
    number = count(200, 1000)
    followed = new_updater()
    everything: dict[Key, Change] = {}
    for at in range(number):
        everything |= own_policy(f"ns-{at}", {"require": {"families": {"in": ["hopper"]}, "capacity": ["spot"]}})
        everything["Namespace", "", f"ns-{at}"] = {"metadata": {"name": f"ns-{at}", "labels": {"team": str(at)}}}
    begun = time.thread_time()
    followed.apply(everything)
    whole = time.thread_time() - begun
    times = []
    for at in range(9):
        begun = time.thread_time()
        assert followed.apply(own_policy("ns-5", {"require": {"gpusPerPod": {"max": at + 1}}})).changed
        times.append(time.thread_time() - begun)
    assert sorted(times)[4] < whole / 20


def test_the_acting_forms_are_typed() -> None:
    """Of each kind its own."""
    changing = Changing(Random(3), ONE_PLATFORM)
    followed = new_updater()
    for _ in range(count(20, 400)):
        for key, one in followed.apply(changing.batch()).entries.items():
            assert one.acting is None or isinstance(one.acting, NodeTemplate if key[0] == "GPUNodeTemplate" else Policy)


def test_claims_that_are_one_pods_own_let_what_was_decided_stay() -> None:
    """They come and go with every pod. What they ask for is known all the same, and one that is nobody's own counts for everything."""
    followed, before = fifty()
    key = ("ResourceClaim", "ns-3", "train-gpu-x7k2q")
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}}
    value = {"metadata": {"name": key[2], "namespace": key[1]}, "spec": spec}
    there, gone = followed.apply({key: value}), followed.apply({key: None})
    assert (there.decisions_hold, gone.decisions_hold) == (True, True), "a claim is in the key of what rests on it"
    assert [one.snapshot.cluster.claims.keys() for one in (before, there, gone)] == [set(), {key}, set()]
