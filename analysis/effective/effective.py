"""The effect of policies on a namespace, field by field: the value in effect, who set it, what it clipped or
overrode.

Nothing is merged here. A pod without settings of its own is planned as the engine plans it (``plan``,
``choose``, the rules), and the rows are read from the plan: so the report can't differ from what is done.
Policies that apply to some pods only, and those in Audit and Warn, are shown by the difference that they make
to what is enforced for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.conditions.server_options import UsedPlatforms
from analysis.effective import effective_probe
from analysis.effective.effective_defaults import default_rows
from analysis.effective.effective_probe import PodKind, example, request_for
from analysis.effective.effective_rows import EffectiveRow, Remarks, allow_rows, require_rows
from kube import duration
from kube.pod import Pod
from policies.engine import evaluate_policies
from policies.messages import OF_EDITS
from policies.objects.wording import condition, describe_scope
from policies.offers.constraints import Compiled
from policies.planning import plan
from policies.pods.projection import extract
from policies.policy import LongRuns, Policy
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Mode, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespacePolicy:
    """A policy of the namespace, and whether it applies."""

    policy: Policy
    mode: Mode
    """the policy's mode, capped by --max-mode"""
    acts: str
    """``always``, ``sometimes`` or ``never`` on the pods in question"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The difference that a condition, or a policy in Audit or Warn, makes to what is enforced for all."""

    title: str
    policies: tuple[str, ...]
    kind: PodKind | None
    """the kind of pod examined; None if no pod that requests a GPU is such"""
    rows: tuple[EffectiveRow, ...] = ()
    """the rows that differ"""
    denied: tuple[Violation, ...] = ()
    """why such a pod would be denied, besides reasons that apply anyway, whoever asks for them"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The effect of one set of policies on one kind of pod without settings of its own."""

    rows: tuple[EffectiveRow, ...]
    remarks: tuple[str, ...]
    """remarks that belong to no single field"""
    denied: tuple[Violation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The whole answer for one namespace and kind of pod."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    excluded: bool
    """True if Berth is never called for this namespace"""
    kind: PodKind
    policies: tuple[NamespacePolicy, ...]
    look: Look
    some: tuple[Layer, ...]
    audit_outcomes: tuple[Layer, ...]
    platforms: UsedPlatforms | None = None
    """By which placement is written; None where the caller does not say."""


def effective(facts: NamespaceFacts, kind: PodKind) -> Effective:
    """Return the effect of the policies of ``facts.namespace`` on pods of this kind."""
    matched = effective_probe.match(facts, kind)
    enforced = _enforced(matched.always)
    base = look(facts, kind, enforced)
    return Effective(
        namespace=facts.namespace,
        labels=tuple(sorted(facts.labels.items())),
        excluded=facts.namespace in facts.snapshot.catalog.excluded_namespaces,
        kind=kind,
        policies=tuple(_layer_policy(c, matched) for c in facts.policies),
        look=base,
        some=(*_by_length(facts, kind, enforced, base), *_by_condition(facts, kind, matched.sometimes, base)),
        audit_outcomes=tuple(
            _audit_outcomes(facts, kind, c, matched.always) for c in (*matched.always, *matched.sometimes) if c.mode != "Enforce"
        ),
    )


def _enforced(policies: Sequence[Compiled]) -> tuple[Compiled, ...]:
    return tuple(c for c in policies if c.mode == "Enforce")


def _layer_policy(compiled: Compiled, matched: effective_probe.Matched) -> NamespacePolicy:
    acts = "always" if compiled in matched.always else "sometimes" if compiled in matched.sometimes else "never"
    return NamespacePolicy(policy=compiled.policy, mode=compiled.mode, acts=acts)


def look(facts: NamespaceFacts, kind: PodKind, policies: Sequence[Compiled]) -> Look:
    """Return the effect of these policies on such a pod, as if all were in Enforce."""
    if not policies:
        return Look(rows=(), remarks=(), denied=())
    acting = tuple(c if c.mode == "Enforce" else replace(c, mode="Enforce") for c in policies)
    request = request_for(kind, facts.namespace, facts.snapshot.catalog)
    subject = plan.review_pod(request, facts, Pod(extract(request.pod, facts.reads)))
    effective_plan, outcome = evaluate_policies(facts, subject._replace(may_match=acting, matches=frozenset(acting)), acting)
    remarks = Remarks([remark for remark in outcome.remarks if remark.code not in OF_EDITS])  # the rows tell what they do
    # first: theirs is what rules remark of a default that a requirement cuts
    defaults = tuple(default_rows(effective_plan, outcome.edits, remarks))
    rows = (*require_rows(effective_plan, remarks), *defaults, *allow_rows(effective_plan))
    return Look(rows=rows, remarks=tuple(map(str, remarks.left)), denied=outcome.violations)


# --- for some pods only -------------------------------------------------------------------------------------


def _by_length(facts: NamespaceFacts, kind: PodKind, enforced: tuple[Compiled, ...], base: Look) -> Iterator[Layer]:
    """Yield a layer for each length of runs for which a policy makes a difference."""
    if kind.seconds is not None:
        return
    overs = sorted({runs.over for c in enforced for runs in _long_runs(c)})
    titles = [f"runs of at most {duration.format_duration(over)}" for over in overs] + [
        f"runs over {duration.format_duration(over)}" for over in overs[-1:]
    ]
    for title, seconds in zip(titles, [*overs, *(over + 1 for over in overs[-1:])], strict=True):
        one = replace(kind, seconds=seconds)
        layer = _difference(title, (), one, look(facts, one, enforced), base)
        if layer.rows or layer.denied:
            yield layer


def _long_runs(compiled: Compiled) -> Iterator[LongRuns]:
    for runs in (compiled.policy.require.long_runs, compiled.policy.default.long_runs):
        if runs is not None:
            yield runs


def _by_condition(facts: NamespaceFacts, kind: PodKind, sometimes: Sequence[Compiled], base: Look) -> Iterator[Layer]:
    """Yield a layer for each condition under which enforced policies apply."""
    conditions: dict[str, list[Compiled]] = {}
    for compiled in _enforced(sometimes):
        conditions.setdefault(condition(compiled.policy), []).append(compiled)
    for title, policies in conditions.items():
        names = tuple(c.id for c in policies)
        one = example(facts, policies[0], kind)
        if one is None:
            yield Layer(title=title, policies=names, kind=None)
            continue
        yield _difference(title, names, one, look(facts, one, _enforced(effective_probe.match(facts, one).always)), base)


def _audit_outcomes(facts: NamespaceFacts, kind: PodKind, compiled: Compiled, always: Sequence[Compiled]) -> Layer:
    """Return the layer of one policy in Audit or Warn, added alone to what is enforced, as the engine
    evaluates it."""
    one: PodKind | None = kind
    if compiled not in always:
        one = example(facts, compiled, kind)
        always = () if one is None else effective_probe.match(facts, one).always
    chosen = condition(compiled.policy)
    title = f"{compiled.id} ({compiled.mode})" + (f", {chosen}" if chosen else "")
    if one is None:
        return Layer(title=title, policies=(compiled.id,), kind=None)
    with_it = tuple(c for c in always if c.mode == "Enforce" or c is compiled)
    return _difference(title, (compiled.id,), one, look(facts, one, with_it), look(facts, one, _enforced(always)))


def _difference(title: str, policies: tuple[str, ...], kind: PodKind, found: Look, base: Look) -> Layer:
    anyway = {violation.key for violation in base.denied}
    return Layer(
        title=title,
        policies=policies,
        kind=kind,
        rows=tuple(row for row in found.rows if row not in base.rows),
        denied=tuple(violation for violation in found.denied if violation.key not in anyway),
    )


def reach(policy: NamespacePolicy) -> str:
    """Return to which pods and namespaces a policy applies."""
    never = "does not match: " if policy.acts == "never" else ""
    only = ", only " if policy.acts == "sometimes" else ", "
    pods = f"{only}{chosen}" if (chosen := condition(policy.policy)) else ""
    users = policy.policy.exclude_users
    excludes = f"; except requests of {', '.join(sorted(users))}" if users else ""
    return f"{never}{describe_scope(policy.policy)}{pods}{excludes}"
