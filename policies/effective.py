"""What policies make of a namespace, field by field: the value in effect, who set it, what it clipped or overrode.

Nothing is merged here. A pod that says nothing itself is planned as the engine plans it (``plan``, ``choose``, the rules), and the plan is
read out: so what is told can't differ from what is done. What holds for some pods only, and what Audit and Warn policies would do, is the
difference that they make on top of what is enforced for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from policies import choose, chosen, devices, duration, effective_probe, plan
from policies.compiled import Compiled
from policies.effective_defaults import default_rows
from policies.effective_probe import Kind, condition, example, request_for, scope
from policies.effective_rows import Remarks, Row, allow_rows, require_rows
from policies.engine import evaluate
from policies.extract import extract
from policies.plan import Plan
from policies.pod import Pod
from policies.policy import LongRuns
from policies.rules import RULES
from policies.snapshot import Facts
from policies.verdict import Edit, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A policy of the namespace, and whether it acts."""

    id: str
    mode: Mode
    declared: Mode
    """before --max-mode"""
    scope: str
    condition: str
    """which pods it chooses; "": all that ask for an accelerator"""
    excludes: tuple[str, ...]
    """users that it leaves alone"""
    acts: str
    """``always``, ``sometimes`` or ``never`` on the pods in question"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What some pods, or a policy in Audit or Warn, add to what is enforced for all."""

    title: str
    policies: tuple[str, ...]
    kind: Kind | None
    """the pod that was looked at; None: there is none that asks for a GPU"""
    rows: tuple[Row, ...] = ()
    """those that differ"""
    refused: tuple[str, ...] = ()
    """why such a pod would be refused, beside what refuses it anyway"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one set of policies makes of one kind of pod that says nothing itself."""

    rows: tuple[Row, ...]
    said: tuple[str, ...]
    """remarks that belong to no single field"""
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The whole answer for one namespace and kind of pod."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    excluded: bool
    """Berth is never called for this namespace"""
    kind: Kind
    policies: tuple[Standing, ...]
    look: Look
    some: tuple[Layer, ...]
    would: tuple[Layer, ...]


def effective(facts: Facts, kind: Kind) -> Effective:
    """What the policies of ``facts.namespace`` make of pods of this kind."""
    matched = effective_probe.match(facts, kind)
    enforced = _enforced(matched.always)
    base = look(facts, kind, enforced)
    return Effective(
        namespace=facts.namespace,
        labels=effective_probe.labels_of(facts.labels),
        excluded=facts.namespace in facts.snapshot.catalog.excluded_namespaces,
        kind=kind,
        policies=tuple(_standing(c, matched) for c in facts.policies),
        look=base,
        some=(*_by_length(facts, kind, enforced, base), *_by_condition(facts, kind, matched.sometimes, base)),
        would=tuple(_would(facts, kind, c, matched.always) for c in (*matched.always, *matched.sometimes) if c.mode != "Enforce"),
    )


def _enforced(policies: Sequence[Compiled]) -> tuple[Compiled, ...]:
    return tuple(c for c in policies if c.mode == "Enforce")


def _standing(compiled: Compiled, matched: effective_probe.Matched) -> Standing:
    policy = compiled.policy
    acts = "always" if compiled in matched.always else "sometimes" if compiled in matched.sometimes else "never"
    return Standing(
        id=policy.id,
        mode=compiled.mode,
        declared=policy.mode,
        scope=scope(compiled),
        condition=condition(policy.match),
        excludes=tuple(sorted(policy.exclude_users)),
        acts=acts,
    )


def look(facts: Facts, kind: Kind, policies: Sequence[Compiled]) -> Look:
    """What these policies, all as if in Enforce, make of such a pod."""
    if not policies:
        return Look(rows=(), said=(), refused=())
    acting = tuple(c if c.mode == "Enforce" else replace(c, mode="Enforce") for c in policies)
    request = request_for(kind, facts.namespace, facts.snapshot.catalog)
    made, edits = planned(facts, kind, acting)
    verdict = evaluate(request, replace(facts, policies=acting))
    said = dict.fromkeys((*made.remarks, *verdict.remarks))
    remarks = Remarks([remark for remark in said if remark.code not in chosen.OF_EDITS])  # the rows tell what they do
    defaults = tuple(default_rows(made, edits, remarks))  # first: what is said of a default may name what is required
    found = (*require_rows(made, remarks), *defaults, *allow_rows(made))
    return Look(rows=found, said=tuple(map(str, remarks.left)), refused=tuple(map(str, verdict.violations)))


def planned(facts: Facts, kind: Kind, policies: tuple[Compiled, ...]) -> tuple[Plan, tuple[Edit, ...]]:
    """The engine's plan for such a pod, and what its rules write into it."""
    request = request_for(kind, facts.namespace, facts.snapshot.catalog)
    pod = Pod(extract(request.pod, facts.reads))
    about = plan.Subject(request=request, pod=pod, devices=devices.read(pod, facts), possible=policies, certain=frozenset(policies))
    made = plan.make(facts, about, policies)
    choose.choose(made)
    return made, tuple(edit for rule in RULES for edit in rule.mutate(request, made))


# --- for some pods only ------------------------------------------------------------------------------------------------


def _by_length(facts: Facts, kind: Kind, enforced: tuple[Compiled, ...], base: Look) -> Iterator[Layer]:
    """Runs of a known length, where a policy makes a difference by it."""
    if kind.seconds is not None:
        return
    overs = sorted({runs.over for c in enforced for runs in _long_runs(c)})
    titles = [f"runs of at most {duration.text(over)}" for over in overs] + [f"runs over {duration.text(over)}" for over in overs[-1:]]
    for title, seconds in zip(titles, [*overs, *(over + 1 for over in overs[-1:])], strict=True):
        one = replace(kind, seconds=seconds)
        layer = _difference(title, (), one, look(facts, one, enforced), base)
        if layer.rows or layer.refused:
            yield layer


def _long_runs(compiled: Compiled) -> Iterator[LongRuns]:
    for runs in (compiled.policy.require.long_runs, compiled.policy.default.long_runs):
        if runs is not None:
            yield runs


def _by_condition(facts: Facts, kind: Kind, sometimes: Sequence[Compiled], base: Look) -> Iterator[Layer]:
    """One for each condition under which enforced policies act."""
    conditions: dict[str, list[Compiled]] = {}
    for compiled in _enforced(sometimes):
        conditions.setdefault(condition(compiled.policy.match), []).append(compiled)
    for title, policies in conditions.items():
        names = tuple(c.policy.id for c in policies)
        one = example(facts, policies[0], kind)
        if one is None:
            yield Layer(title=title, policies=names, kind=None)
            continue
        yield _difference(title, names, one, look(facts, one, _enforced(effective_probe.match(facts, one).always)), base)


def _would(facts: Facts, kind: Kind, compiled: Compiled, always: Sequence[Compiled]) -> Layer:
    """One policy in Audit or Warn, alone on top of what is enforced on such a pod, as the engine evaluates it."""
    one: Kind | None = kind
    if compiled not in always:
        one = example(facts, compiled, kind)
        always = () if one is None else effective_probe.match(facts, one).always
    chosen = condition(compiled.policy.match)
    title = f"{compiled.policy.id} ({compiled.mode})" + (f", {chosen}" if chosen else "")
    if one is None:
        return Layer(title=title, policies=(compiled.policy.id,), kind=None)
    with_it = tuple(c for c in always if c.mode == "Enforce" or c is compiled)
    return _difference(title, (compiled.policy.id,), one, look(facts, one, with_it), look(facts, one, _enforced(always)))


def _difference(title: str, policies: tuple[str, ...], kind: Kind, found: Look, base: Look) -> Layer:
    return Layer(
        title=title,
        policies=policies,
        kind=kind,
        rows=tuple(row for row in found.rows if row not in base.rows),
        refused=tuple(text for text in found.refused if text not in base.refused),
    )
