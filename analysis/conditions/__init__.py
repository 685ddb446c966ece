"""Compute the status of each of Berth's own objects from one snapshot, without timestamps
(``cluster.status.writer`` writes it). The conditions are:

- Accepted: always. False: ``Invalid`` with every error, ``TemplateNotFound``, or ``TooManyPolicies``.
- Conflicted: always on policies. True: ``NothingOffered``, ``RequirementsExclude`` or ``DefaultsDiffer``, the
  gravest of them. A policy that only audits conflicts with nothing: False, ``ConflictsInEnforce`` where it would.
- Clipped: only while defaults are outside what others require or allow.
- Inexpressible: only while a platform in force cannot express a field.
- QuotaNotCovered: only while a slice is not limited by a ResourceQuota.
- AdvertisedTwice: only while nodes offer devices by a device plugin and by DRA at once, on the cluster's policies.
- Ready: always, True while Accepted is, for who waits for objects to be in force (``kubectl wait``, Helm, Flux).
  ``ModeCapped`` where the server's --max-mode lets less act than the policy says.
- Stalled: True only while the object is ``Invalid``, which only a change of the object fixes, so that who waits by
  the rules of kstatus (sigs.k8s.io/cli-utils/pkg/kstatus) gives up at once. What other objects fix, such as a
  template that is not there yet, is waited for.

Policies are compared with those in Enforce alone, in the namespaces of which the API server sends pods. The work
grows with the number of policies, not with policies times namespaces, and is done in steps well under a
millisecond, so that the event loop can run in between.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.conditions.clips import Clips
from analysis.conditions.conditions import ALONE, INVALID, Condition, conflicted, for_waits, not_conflicted, only_true, too_many
from analysis.conditions.covered import CoveredQuotas, Quotas
from analysis.conditions.devices import advertised_twice
from analysis.conditions.differences import Differences
from analysis.conditions.exclusions import Exclusions
from analysis.conditions.platforms import inexpressible
from analysis.conditions.reach import NamespaceIndex, Reach
from analysis.conditions.sets import Graces, counts_of, offers_of
from analysis.conditions.words import MOST_LINE, acting_instead, describe_match, sentences, what, what_template
from catalog.nearest import hint
from documents.printable import counted
from kube.labels import LabelSelector
from policies.messages import cut_text
from policies.offers.constraints import Compiled, CompiledTemplate
from policies.planning.feasibility import everything
from policies.policy import Allow, Require
from policies.state.objects import Key, ObjectEntry, id_of
from policies.state.snapshot import Snapshot
from policies.verdict import Mode

TEMPLATE = "GPUNodeTemplate"
KINDS = ("ClusterGPUPolicy", "GPUPolicy", TEMPLATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStatus:
    """The status of one object, for the generation from which it was computed."""

    uid: str
    generation: int
    conditions: tuple[Condition, ...]
    mode: Mode | None = None
    """The effective mode; None for a template or an inactive policy."""
    server: Mapping[str, Any] | None = None
    """The platforms and queue systems of the server; None where ``mode`` is."""
    where: str
    what: str
    last_good: Mapping[str, Any] | None
    """Set only while Accepted is False."""


def compute_conditions(
    snapshot: Snapshot, entries: Mapping[Key, ObjectEntry], quotas: Quotas, registered: LabelSelector | None = None
) -> dict[Key, ObjectStatus]:
    """Return the findings on all objects in one call. ``quotas``: namespace -> ``spec.hard`` of each of its
    ResourceQuotas, used only for policies with ``default.mig``. ``registered``: the namespaces of which pods are sent; None for all."""
    steps = in_steps(snapshot, entries, quotas, registered)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: dict[Key, ObjectStatus] = done.value
            return found


def in_steps(
    snapshot: Snapshot, entries: Mapping[Key, ObjectEntry], quotas: Quotas, registered: LabelSelector | None = None
) -> Generator[None, None, dict[Key, ObjectStatus]]:
    """Compute the same as ``compute_conditions`` step by step, as a generator that returns the result.

    ``entries`` must not change until it ends.
    """
    compared = _Compared(snapshot, quotas, registered)
    yield from compared.steps()
    found: dict[Key, ObjectStatus] = {}
    for key, entry in entries.items():
        if key[0] in KINDS:
            found[key] = compared.template(key, entry, entries) if key[0] == TEMPLATE else compared.policy(key, entry, entries)
            yield
    return found


class _Compared:
    """The policies of a snapshot, compared with each other."""

    def __init__(self, snapshot: Snapshot, quotas: Quotas, registered: LabelSelector | None) -> None:
        self._snapshot = snapshot
        self._registered = registered
        self._server = {"platforms": list(snapshot.tables) if snapshot.placed else [], "queues": list(snapshot.queues)}
        self._quotas = quotas
        self._by_id = {c.id: c for c in snapshot.policies}
        self._cluster = [c for c in snapshot.policies if c.policy.namespace is None]
        self._own: dict[str, list[Compiled]] = {}
        for compiled in snapshot.policies:
            if compiled.policy.namespace is not None:
                self._own.setdefault(compiled.policy.namespace, []).append(compiled)
        self._limits = list(filter(_limits, self._cluster))
        self._limits_in: dict[str, list[Compiled]] = {}
        self._differences = Differences()
        self._named: dict[str, list[str]] = {}
        """Template -> ids of the policies whose default it is."""

    def steps(self) -> Iterator[None]:
        """Do everything that involves more than one policy, step by step."""
        snapshot = self._snapshot
        offers = everything(snapshot)
        self._reach = reach = Reach(NamespaceIndex(snapshot, self._registered))
        yield from reach.steps(snapshot)
        self._clips = Clips(snapshot, reach, offers)
        self._covered = CoveredQuotas(snapshot, reach, self._quotas)
        self._exclusions = (
            Exclusions(lambda c: offers_of(c, offers), "GPU", reach),
            Exclusions(counts_of, "number of GPUs", reach),
            Exclusions(Graces(snapshot.policies).demand, "grace period", reach),
        )
        yield from self._differences.steps(self._cluster, reach)
        for exclusions in self._exclusions:
            yield from exclusions.cluster_steps(self._cluster)
        for namespace, own in self._own.items():
            yield from self._differences.steps(own, reach)
            for exclusions in self._exclusions:
                yield from exclusions.own_steps(namespace, own)
        for compiled in snapshot.policies:
            if compiled.policy.default.node_template is not None:
                self._named.setdefault(compiled.policy.default.node_template, []).append(compiled.id)

    def policy(self, key: Key, entry: ObjectEntry, entries: Mapping[Key, ObjectEntry]) -> ObjectStatus:
        """Return the finding on a ClusterGPUPolicy or a GPUPolicy."""
        compiled = self._by_id.get(id_of(key))
        accepted = _accepted(entry, entries)
        if compiled is None or entry.acting is None:
            return _finding(entry, accepted, not_conflicted(), where="", what=_idle(entry))
        if entry.namespace and compiled not in self._snapshot.own.get(entry.namespace, ()):
            return _finding(entry, too_many(), not_conflicted(), where="", what=what(compiled))
        constraints = (*compiled.require, *([compiled.require_long] if compiled.require_long else []))
        defaults = (*compiled.machine, *(c for c in (compiled.capacity,) if c))
        others = (
            self._conflicted(compiled),
            only_true("Clipped", "OutsideRequirements", self._clips.sentences(compiled, self._limiting(compiled))),
            only_true("Inexpressible", "NoSuchLabels", inexpressible(self._snapshot, constraints, defaults)),
            only_true("QuotaNotCovered", "SliceNotLimited", self._covered.sentences(compiled)),
            only_true("AdvertisedTwice", "DevicePluginAndDRA", advertised_twice(self._snapshot, entry.namespace)),
        )
        picked = self._reach.of[compiled].bit_count()
        where = describe_match(compiled, picked)
        return _finding(entry, accepted, *others, compiled=compiled, server=self._server, where=where, what=what(compiled))

    def _limiting(self, compiled: Compiled) -> Sequence[Compiled]:
        """Return the policies that may clip this one: those in its scope or a wider one that require or
        grant."""
        namespace = compiled.policy.namespace
        if namespace is None:
            return self._limits
        found = self._limits_in.get(namespace)
        if found is None:
            here = self._reach.namespaces.bit[namespace]
            found = [*(c for c in self._limits if self._reach.of[c] & here), *filter(_limits, self._own[namespace])]
            self._limits_in[namespace] = found
        return found

    def _conflicted(self, compiled: Compiled) -> Condition:
        impossible = [e.impossible[compiled] for e in self._exclusions if compiled in e.impossible]
        platforms = f"{', '.join(self._snapshot.tables)}" if self._snapshot.placed else "any platform"
        by_reason = {
            ALONE: [f"{text} cannot be satisfied on {platforms}: every pod that the policy matches is denied" for text in impossible],
            "RequirementsExclude": [text for e in self._exclusions for text in e.sentences.get(compiled, ())],
            "DefaultsDiffer": self._differences.sentences.get(compiled, []),
        }
        conflicts = [text for texts in by_reason.values() for text in texts]
        if conflicts:
            reason = next(reason for reason, texts in by_reason.items() if texts)
            return conflicted(reason, conflicts, compiled.mode)
        axes = [*filter(None, (found.unjudged.get(compiled) for found in (self._differences, *self._exclusions)))]
        if axes:
            return Condition("Conflicted", "Unknown", "TooManyPolicies", f"too many policies to compare with each other: {', '.join(axes)}")
        return not_conflicted()

    def template(self, key: Key, entry: ObjectEntry, entries: Mapping[Key, ObjectEntry]) -> ObjectStatus:
        """Return the finding on a GPUNodeTemplate, which conflicts with nothing."""
        compiled: CompiledTemplate | None = self._snapshot.templates.get(key[2])
        accepted = _accepted(entry, entries)
        if compiled is None or entry.acting is None:
            return _finding(entry, accepted, where="", what=_idle(entry))
        users = self._named.get(key[2], [])
        text = f"default of {counted(len(users), 'policy', 'policies')}"
        return _finding(entry, accepted, where=text, what=what_template(compiled.template))


def _limits(compiled: Compiled) -> bool:
    return compiled.policy.require != Require() or compiled.policy.allow != Allow()


def _finding(
    entry: ObjectEntry,
    accepted: Condition,
    *others: Condition | None,
    where: str,
    what: str,
    compiled: Compiled | None = None,
    server: Mapping[str, Any] | None = None,
) -> ObjectStatus:
    return ObjectStatus(
        uid=entry.uid,
        generation=entry.generation,
        conditions=(*(c for c in (accepted, *others) if c is not None), *for_waits(accepted, compiled)),
        mode=compiled.mode if compiled is not None else None,
        server=server,
        where=where,
        what=what,
        last_good=entry.last_good if entry.stale else None,
    )


def _accepted(entry: ObjectEntry, entries: Mapping[Key, ObjectEntry]) -> Condition:
    understood = entry.understood
    if understood.errors:
        count = len(understood.errors)
        end = f"{counted(count, 'error')}; {acting_instead(entry)}."
        return Condition("Accepted", "False", INVALID, sentences(understood.errors, end))
    lacking = [text for path, name in understood.templates if (text := _lacking(path, name, entries))]
    if lacking:
        return Condition("Accepted", "False", "TemplateNotFound", sentences(lacking, "The rest of the policy applies."))
    return Condition("Accepted", "True", "Understood", sentences(understood.warnings))


def _idle(entry: ObjectEntry) -> str:
    """Return the text of the column ``what`` for an object that does nothing."""
    return cut_text(f"nothing: {entry.understood.errors[0]}", MOST_LINE) if entry.understood.errors else "nothing"


def _lacking(path: str, name: str, entries: Mapping[Key, ObjectEntry]) -> str:
    found = entries.get((TEMPLATE, "", name))
    if found is None:
        known = {key[2] for key in entries if key[0] == TEMPLATE}
        return f'{path}: there is no GPUNodeTemplate "{cut_text(name, 80)}"{hint(name, known)}'
    return "" if found.acting is not None else f'{path}: the GPUNodeTemplate "{cut_text(name, 80)}" is invalid'
