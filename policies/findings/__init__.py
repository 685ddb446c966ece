"""What the status of each of our objects has to say, without times: worked out from one snapshot, written by ``cluster.statuses``.

Which conditions there are:

    Accepted         always. False: ``Invalid`` with every error, ``TemplateNotFound``, or ``TooManyPolicies``
    Conflicted       always on policies. True: ``NothingOffered``, ``RequirementsExclude`` or ``DefaultsDiffer``, the gravest of them
    Clipped          only while defaults are outside what others require or allow
    Inexpressible    only while a platform in force can't say a field
    QuotaNotCovered  only while a slice gets past a ResourceQuota

Policies are compared whatever their mode, and those that are not enforced are named with it. The work goes by policies, never by policy
and namespace, and is done in steps well under a millisecond, so that the event loop can go on in between.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies.compiled import Compiled, CompiledTemplate
from policies.findings.clips import Clips
from policies.findings.covered import Covered, Quotas
from policies.findings.differences import Differences
from policies.findings.exclusions import Exclusions
from policies.findings.platforms import inexpressible
from policies.findings.reach import Namespaces, Reach
from policies.findings.sets import Graces, Offers, counts_of, offers_of
from policies.findings.words import MOST_LINE, sentences, what, what_template, where
from policies.nearest import hint
from policies.policy import Allow, Require
from policies.snapshot import MOST_OWN, MOST_OWN_TOLERATIONS, Snapshot
from policies.stored import Entry, Key, id_of
from policies.wording import cut

TEMPLATE = "GPUNodeTemplate"
KINDS = ("ClusterGPUPolicy", "GPUPolicy", TEMPLATE)


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    """True or False"""
    reason: str
    message: str
    """at most 2,000 characters"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Of one object, in the generation that was looked at."""

    uid: str
    generation: int
    conditions: tuple[Condition, ...]
    where: str
    what: str
    last_good: Mapping[str, Any] | None
    """only while Accepted is False"""


def findings(snapshot: Snapshot, entries: Mapping[Key, Entry], quotas: Quotas) -> dict[Key, Finding]:
    """All at once. ``quotas``: namespace -> ``spec.hard`` of each of its ResourceQuotas; of policies with ``default.mig`` alone."""
    steps = in_steps(snapshot, entries, quotas)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: dict[Key, Finding] = done.value
            return found


def in_steps(snapshot: Snapshot, entries: Mapping[Key, Entry], quotas: Quotas) -> Generator[None, None, dict[Key, Finding]]:
    """The same, as a generator that returns them. ``entries`` must stay as they are until it ends."""
    compared = _Compared(snapshot, quotas)
    yield from compared.steps()
    found: dict[Key, Finding] = {}
    for key, entry in entries.items():
        if key[0] in KINDS:
            found[key] = compared.template(key, entry, entries) if key[0] == TEMPLATE else compared.policy(key, entry, entries)
            yield
    return found


class _Compared:
    """The policies of a snapshot, compared with each other."""

    def __init__(self, snapshot: Snapshot, quotas: Quotas) -> None:
        self._snapshot = snapshot
        self._quotas = quotas
        self._by_id = {c.policy.id: c for c in snapshot.policies}
        self._cluster = [c for c in snapshot.policies if c.policy.namespace is None]
        self._own: dict[str, list[Compiled]] = {}
        for compiled in snapshot.policies:
            if compiled.policy.namespace is not None:
                self._own.setdefault(compiled.policy.namespace, []).append(compiled)
        self._limits = list(filter(_limits, self._cluster))
        self._limits_in: dict[str, list[Compiled]] = {}
        self._differences = Differences()
        self._named: dict[str, list[str]] = {}
        """template -> policies that give it by default"""

    def steps(self) -> Iterator[None]:
        """Everything that takes more than one policy."""
        snapshot = self._snapshot
        offers = Offers(snapshot)
        self._reach = reach = Reach(Namespaces(snapshot))
        yield from reach.steps(snapshot)
        self._clips = Clips(snapshot, reach, offers)
        self._covered = Covered(snapshot, reach, self._quotas)
        self._exclusions = (
            Exclusions(lambda c: offers_of(c, offers), "GPU", reach),
            Exclusions(counts_of, "number of GPUs", reach),
            Exclusions(Graces(snapshot.policies).demand, "grace period", reach),
        )
        yield from self._differences.steps(self._cluster, reach, offers)
        for exclusions in self._exclusions:
            yield from exclusions.cluster_steps(self._cluster)
        for namespace, own in self._own.items():
            yield from self._differences.steps(own, reach, offers)
            for exclusions in self._exclusions:
                yield from exclusions.own_steps(namespace, own)
        for compiled in snapshot.policies:
            if compiled.policy.default.node_template is not None:
                self._named.setdefault(compiled.policy.default.node_template, []).append(compiled.policy.id)

    def policy(self, key: Key, entry: Entry, entries: Mapping[Key, Entry]) -> Finding:
        """Of a ClusterGPUPolicy or a GPUPolicy."""
        compiled = self._by_id.get(id_of(key))
        accepted = _accepted(entry, entries)
        if compiled is None or entry.acting is None:
            return _finding(entry, (accepted, _not_conflicted()), where="", what=_idle(entry))
        if entry.namespace and compiled not in self._snapshot.own.get(entry.namespace, ()):
            return _finding(entry, (_too_many(), _not_conflicted()), where="", what=what(compiled))
        constraints = (*compiled.require, *([compiled.require_long] if compiled.require_long else []))
        defaults = (*compiled.machine, *(c for c in (compiled.capacity,) if c))
        conditions = (
            accepted,
            self._conflicted(compiled),
            _only_true("Clipped", "OutsideRequirements", self._clips.sentences(compiled, self._limiting(compiled))),
            _only_true("Inexpressible", "NoSuchLabels", inexpressible(self._snapshot, constraints, defaults)),
            _only_true("QuotaNotCovered", "SliceNotLimited", self._covered.sentences(compiled)),
        )
        picked = self._reach.of[compiled].bit_count()
        return _finding(entry, conditions, where=where(compiled, picked), what=what(compiled))

    def _limiting(self, compiled: Compiled) -> Sequence[Compiled]:
        """Policies that may clip it: with requirements or grants, in its scope and wider ones."""
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
            "NothingOffered": [f"{text} leaves nothing on {platforms}: every pod that it matches is refused" for text in impossible],
            "RequirementsExclude": [text for e in self._exclusions for text in e.said.get(compiled, ())],
            "DefaultsDiffer": self._differences.said.get(compiled, []),
        }
        said = [text for texts in by_reason.values() for text in texts]
        if said:
            return Condition("Conflicted", "True", next(reason for reason, texts in by_reason.items() if texts), sentences(said))
        axes = [*filter(None, (found.unjudged.get(compiled) for found in (self._differences, *self._exclusions)))]
        if axes:
            return Condition("Conflicted", "Unknown", "TooManyPolicies", f"too many policies to compare each with each: {', '.join(axes)}")
        return _not_conflicted()

    def template(self, key: Key, entry: Entry, entries: Mapping[Key, Entry]) -> Finding:
        """Of a GPUNodeTemplate: it conflicts with nothing, and says by its labels what no label of a platform does."""
        compiled: CompiledTemplate | None = self._snapshot.templates.get(key[2])
        accepted = _accepted(entry, entries)
        if compiled is None or entry.acting is None:
            return _finding(entry, (accepted,), where="", what=_idle(entry))
        users = self._named.get(key[2], [])
        text = f"default of {len(users)} {'policy' if len(users) == 1 else 'policies'}"
        return _finding(entry, (accepted,), where=text, what=what_template(compiled))


def _limits(compiled: Compiled) -> bool:
    return compiled.policy.require != Require() or compiled.policy.allow != Allow()


def _finding(entry: Entry, conditions: tuple[Condition | None, ...], *, where: str, what: str) -> Finding:
    return Finding(
        uid=entry.uid,
        generation=entry.generation,
        conditions=tuple(c for c in conditions if c is not None),
        where=where,
        what=what,
        last_good=entry.last_good if entry.stale else None,
    )


def _not_conflicted() -> Condition:
    return Condition("Conflicted", "False", "NoConflict", "")


def _only_true(name: str, reason: str, said: tuple[str, ...]) -> Condition | None:
    return Condition(name, "True", reason, sentences(said)) if said else None


def _too_many() -> Condition:
    text = (
        f"of a namespace's GPUPolicies the first {MOST_OWN} by name act, with {MOST_OWN_TOLERATIONS} tolerations in all that they forbid or"
        " add, and this is none of them: delete others, or put some together"
    )
    return Condition("Accepted", "False", "TooManyPolicies", text)


def _accepted(entry: Entry, entries: Mapping[Key, Entry]) -> Condition:
    understood = entry.understood
    if understood.errors:
        count = len(understood.errors)
        end = f"{count} error{'' if count == 1 else 's'}; {_instead(entry)}."
        return Condition("Accepted", "False", "Invalid", sentences(understood.errors, end))
    lacking = [text for path, name in understood.templates if (text := _lacking(path, name, entries))]
    if lacking:
        return Condition("Accepted", "False", "TemplateNotFound", sentences(lacking, "All else acts."))
    return Condition("Accepted", "True", "Understood", sentences(understood.warnings))


def _idle(entry: Entry) -> str:
    """In the column that says what a policy does."""
    return cut(f"nothing: {entry.understood.errors[0]}", MOST_LINE) if entry.understood.errors else "nothing"


def _instead(entry: Entry) -> str:
    if not entry.stale:
        return "it does not act"
    generation = (entry.last_good or {}).get("generation")
    return f"the form of generation {generation} goes on acting" if generation is not None else "its last good form goes on acting"


def _lacking(path: str, name: str, entries: Mapping[Key, Entry]) -> str:
    found = entries.get((TEMPLATE, "", name))
    if found is None:
        known = {key[2] for key in entries if key[0] == TEMPLATE}
        return f'{path}: there is no GPUNodeTemplate "{cut(name, 80)}"{hint(name, known)}'
    return "" if found.acting is not None else f'{path}: the GPUNodeTemplate "{cut(name, 80)}" has errors itself'
