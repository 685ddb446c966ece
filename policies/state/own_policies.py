"""Limits on the policies of one namespace that are in force: they cost everybody's time, so they are
bounded."""

from __future__ import annotations

from collections.abc import Iterable

from policies.offers.constraints import Compiled

MOST_OWN = 40
"""GPUPolicies of one namespace that are in force there, the first by name: each is matched with every pod of
the namespace, and those that match are merged. Without the others, pods are narrowed less: what the cluster
requires still holds."""
MOST_OWN_TOLERATIONS = 40
"""Tolerations that the GPUPolicies of one namespace forbid or add, together: each is compared with each of a
pod (``policies.work_budget``: up to 180), and each that is added is written again in what every audited
policy would do. A policy that would exceed this number is not in force."""


def by_namespace(policies: Iterable[Compiled]) -> dict[str, tuple[Compiled, ...]]:
    """Return the policies in force per namespace that has its own. ``policies`` are sorted by id; the
    cluster's are left out."""
    found: dict[str, list[Compiled]] = {}
    for compiled in policies:
        if compiled.policy.namespace is not None:
            found.setdefault(compiled.policy.namespace, []).append(compiled)
    return {namespace: own_acting(own) for namespace, own in found.items()}


def own_acting(own: Iterable[Compiled]) -> tuple[Compiled, ...]:
    """Return those of one namespace's policies, sorted by id, that are in force."""
    acting: list[Compiled] = []
    left = MOST_OWN_TOLERATIONS
    for compiled in own:
        listed = len(compiled.policy.require.forbid_tolerations) + len(compiled.policy.default.tolerate)
        if listed <= left:
            acting.append(compiled)
            left -= listed
        if len(acting) == MOST_OWN:
            break
    return tuple(acting)
