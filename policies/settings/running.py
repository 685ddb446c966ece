"""What policies give and require of how a pod runs: its longest time, shared memory, classes, scheduler and
neighbours, merged.

Amounts are merged, so that the order of policies never matters. Of a name the namespace's own policies decide
before the cluster's, and those of one scope must agree: otherwise none of them acts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from kube.pod import DEADLINE, Pod
from policies.messages import phrase
from policies.offers.constraints import Compiled
from policies.pods.permissions import Actor
from policies.policy import Default
from policies.settings.limits import TightestLimit, least, most
from policies.verdict import Remark

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NamedValue(Generic[T]):
    """The name that the policies of the first scope that speaks give to a field."""

    value: T | None
    """None: they differ, so none of them acts."""
    policies: tuple[str, ...]

    def differs(self, field: str, rule: str) -> Remark:
        """Return the remark that the policies differ on ``default.FIELD``, so that none of them acts."""
        on = tuple((policy, f"spec.default.{field}") for policy in self.policies)
        return Remark(
            code="BERTH-202", found=phrase("text", policies=self.policies, axis=field), rule=rule, policies=self.policies, fields=on
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    longest: TightestLimit | None
    """``require.maxRuntime``, the shortest, in seconds."""
    max_runtime: TightestLimit | None
    """``default.maxRuntime`` of the first scope that gives one, the longest in it, in seconds."""


def merge_running(policies: Sequence[Compiled], matches: Sequence[Compiled], calm: Sequence[Compiled]) -> Running:
    """Merge the settings of these policies. ``matches``: those whose defaults act; ``calm``: those of them whose
    defaults on how long a pod runs and ends act on the pod's actor."""
    scopes = by_scope(matches)
    given = ([(c.policy.default.max_runtime, c.policy.id) for c in scope if c in calm] for scope in scopes)
    return Running(
        longest=least((c.policy.require.max_runtime, c.policy.id) for c in policies),
        max_runtime=next((limit for values in given if (limit := most(values)) is not None), None),
    )


def by_scope(policies: Iterable[Compiled]) -> tuple[list[Compiled], list[Compiled]]:
    """Return the namespace's own policies, and the cluster's."""
    own: list[Compiled] = []
    cluster: list[Compiled] = []
    for compiled in policies:
        (cluster if compiled.policy.namespace is None else own).append(compiled)
    return own, cluster


def first_given(scopes: Iterable[Sequence[Compiled]], value: Callable[[Default], T | None]) -> list[tuple[Compiled, T]]:
    """Return the policies of the first of these scopes that has such a default, and what each gives; [] where none has."""
    for scope in scopes:
        given = [(c, found) for c in scope if (found := value(c.policy.default)) is not None]
        if given:
            return given
    return []


def merge_named(scopes: Iterable[Sequence[Compiled]], name: Callable[[Default], T | None]) -> NamedValue[T] | None:
    """Return what the policies of the first of these scopes that gives any give; None: none does."""
    given = first_given(scopes, name)
    if not given:
        return None
    values = {value for _, value in given}
    return NamedValue(values.pop() if len(values) == 1 else None, tuple(c.policy.id for c, _ in given))


def seconds_of(pod: Pod) -> int | None:
    """Return the pod's ``activeDeadlineSeconds``; None if it has none, or no whole number."""
    value = pod.spec.get(DEADLINE)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def deadline(running: Running, expected: Fraction | None, actor: Actor) -> TightestLimit | None:
    """Return the ``activeDeadlineSeconds`` that a pod without one gets, in seconds; None: it stays without.

    ``expected``: how long its author expects it to run, in seconds. A default that is shorter does not act; what is
    required does.
    """
    longest = running.longest if actor.floor != "no" else None
    default = running.max_runtime
    if default is None or (expected is not None and default.value < expected):
        return longest
    return longest if longest is not None and longest.value <= default.value else default
