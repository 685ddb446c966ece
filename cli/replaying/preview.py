"""What switching one policy to Enforce would do: the same cluster or recordings, judged by its policies as they are and with
this one in Enforce."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from catalog import Catalog
from cli.output.named_policy import chosen, enforced_already
from cli.replaying.output import groups_table, stake
from cli.replaying.total import Total
from cli.terminal.screen import PLAIN, Terminal
from documents.files import read_policies
from documents.printable import counted, printable
from policies.facts.cluster_facts import ClusterFacts
from policies.state.objects import Change, Key, id_of
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from sources.sources import SourcesError
from sources.state import ClusterState

MISSING, ADVICE = "there is no policy", "berth audit lists them"
POLICIES = ("ClusterGPUPolicy", "GPUPolicy")


def of_cluster(found: ClusterState, name: str, catalog: Catalog, options: Options) -> Snapshot:
    """Return the cluster's own policies with one in Enforce. Raises InputError for one that is not there."""
    changes: dict[Key, Change] = dict(found.objects)
    key = chosen(name, {id_of(key): key for key in changes if key[0] in POLICIES}, missing=MISSING, advice=ADVICE)
    before: Mapping[str, Any] = changes[key] or {}
    spec = before.get("spec")
    if isinstance(spec, dict) and spec.get("mode") == "Enforce":
        raise enforced_already(name, "berth audit")
    changes[key] = {**before, "spec": {**(spec if isinstance(spec, dict) else {}), "mode": "Enforce"}, "status": {}}
    return Updater(catalog, options).apply(changes, all_nodes=found.all_nodes).snapshot


def of_files(paths: Sequence[str], found: ClusterState, name: str, catalog: Catalog, options: Options) -> Snapshot:
    """Return the policies of files with one in Enforce. Raises InputError for one that is not there, SourcesError for
    files that are wrong."""
    policy_set, errors, _ = read_policies(paths, catalog)
    if errors:
        raise SourcesError(errors)
    policy = chosen(name, {one.id: one for one in policy_set.policies}, missing=MISSING, advice=ADVICE)
    if policy.mode == "Enforce":
        raise enforced_already(name, "berth audit")
    switched = tuple(replace(one, mode="Enforce") if one is policy else one for one in policy_set.policies)
    facts, policy_set = ClusterFacts.from_objects(found.facts), replace(policy_set, policies=switched)
    return Updater(catalog, options).replace_all(policy_set, facts, all_nodes=found.all_nodes).snapshot


def preview_lines(name: str, existing: Total, recorded: Total | None, screen: Terminal = PLAIN) -> Iterator[str]:
    """Yield what is shown: the sentence, then the list."""
    yield f"With {printable(name)} in Enforce, {_outcome(existing, 'existing pod')}. Existing pods are unchanged until recreated."
    yield from _list(existing, screen)
    if recorded is not None:
        yield ""
        sentence = _outcome(recorded, "recorded pod")
        yield f"{sentence[:1].upper()}{sentence[1:]}."
        yield from _list(recorded, screen)


def _outcome(total: Total, noun: str) -> str:
    tally = total.tally
    among = f"of {counted(tally.all.pods, noun)} with accelerators,"
    denied = tally.all.turns["newly-denied"] + tally.all.turns["other-reasons"]
    changed = tally.all.turns["other-edits"] + tally.all.turns["newly-admitted"]
    if not denied and not changed:
        return f"{among} none would be denied or changed"
    return f"{among} {denied} would be denied and {changed} changed ({stake(tally.all)})"


def _list(total: Total, screen: Terminal) -> Iterator[str]:
    if total.tally.all.otherwise:
        yield ""
        yield from groups_table(total, screen)
