"""All policies and templates in force, compiled: only what has changed is compiled again."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass

from catalog import Catalog
from catalog.prices import prices
from policies.offers.build import tables_of
from policies.offers.constraints import Compiled, CompiledTemplate, Compiler
from policies.offers.device_costs import DeviceCosts
from policies.offers.table import Table
from policies.pods.projection import Readers, Reads
from policies.policy import NodeTemplate, Policy
from policies.state.objects import Acting, Key, id_of
from policies.verdict import Mode

_MOST_FAMILIES = 64
"""instance families that get rows though the catalog lacks them: clouds release a few between two catalogs; a
thousand take a minute"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompiled:
    """The result of one change of the policies and templates in force."""

    added: tuple[str, ...] = ()
    """ids of policies and templates newly in force, sorted; ``modified`` and ``removed`` have the others"""
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    tables: bool = False
    """True if the tables have changed, so that everything was compiled again"""

    @property
    def any(self) -> bool:
        """True if anything has changed."""
        return self.tables or bool(self.added or self.modified or self.removed)

    @property
    def templates(self) -> bool:
        """True if templates have changed."""
        return any(name.startswith("GPUNodeTemplate/") for names in (self.added, self.modified, self.removed) for name in names)


class Compilation:
    """All policies and templates in force under one catalog, compiled against the tables of the platforms in
    force."""

    def __init__(self, catalog: Catalog, max_mode: Mode) -> None:
        self._catalog = catalog
        self._max_mode: Mode = max_mode
        self.acting: dict[Key, Acting] = {}
        self._ids: list[str] = []
        self._policies: list[Compiled] = []
        """sorted by ``_ids``, the policies' ids: those of the cluster come first"""
        self._own: dict[str, tuple[Compiled, ...]] = {}
        self.templates: dict[str, CompiledTemplate] = {}
        self._known_families = catalog.machine_families()
        self._families: Counter[str] = Counter()
        self._readers = Readers(catalog)
        self._prices = prices(catalog)
        self._settings: tuple[tuple[str, ...], str, frozenset[str], tuple[NodeTemplate, ...], frozenset[str]] | None = None
        """What the tables rest on: see ``tables_of``. None before the first change."""
        self._compiler = Compiler(catalog, {})
        self.costs = DeviceCosts(self._prices)
        """What devices on the tables' offers are and cost."""

    def copied(self) -> Compilation:
        """Return a copy whose ``change`` leaves this one as it is. (A copy that changes no policy may share all maps.)"""
        copied = copy(self)
        copied.acting, copied._own, copied._families = dict(self.acting), dict(self._own), Counter(self._families)
        copied._ids, copied._policies, copied._readers = list(self._ids), list(self._policies), self._readers.copied()
        return copied

    def change(
        self, acting: Mapping[Key, Acting | None], platforms: tuple[str, ...], mig_strategy: str, unmaintained: frozenset[str] = frozenset()
    ) -> Recompiled:
        """Apply a change: ``acting`` has what is in force from now on under each key, or None; other keys do
        not change. ``unmaintained``: the label keys on which no term may be written."""
        changed = {key: now for key, now in acting.items() if self.acting.get(key) != now}
        added = {key for key in changed if key not in self.acting}
        removed = {key for key, now in changed.items() if now is None}
        for key, now in changed.items():
            self._replace(key, now)
        self._families = +self._families
        templates = any(kind == "GPUNodeTemplate" for kind, _, _ in changed)
        tables = self._renew_tables(platforms, mig_strategy, templates=templates, unmaintained=unmaintained)
        if tables:
            self._compile_all()
        else:
            self._compile(key for key in changed if key[0] != "GPUNodeTemplate")
        if tables or templates:
            self.templates = {template.name: self._compiler.template(template) for template in self._acting_templates()}
        return Recompiled(added=_ids(added), modified=_ids(changed.keys() - added - removed), removed=_ids(removed), tables=tables)

    def _replace(self, key: Key, now: Acting | None) -> None:
        before = self.acting.pop(key, None)
        if now is not None:
            self.acting[key] = now
        for one, sign in ((before, -1), (now, 1)):
            if one is None:
                continue
            for family in set(_instance_families(one)):
                self._families[family] += sign
            if isinstance(one, Policy) and one.namespace is None:
                self._readers.count(one, sign)

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by platform, in the catalog's order: the listed ones, or all of them."""
        return self._compiler.tables

    @property
    def policies(self) -> tuple[Compiled, ...]:
        """All policies sorted by id, so that the cluster's come first."""
        return tuple(self._policies)

    @property
    def of_cluster(self) -> tuple[Compiled, ...]:
        """The cluster's policies alone."""
        return tuple(self._policies[: bisect_left(self._ids, "GPUPolicy/")])

    @property
    def own(self) -> dict[str, tuple[Compiled, ...]]:
        """The policies of each namespace that are in force there."""
        return dict(self._own)

    def reads(self) -> Reads:
        """Return what the cluster's policies read of a pod."""
        return self._readers.reads()

    def _renew_tables(self, platforms: tuple[str, ...], mig_strategy: str, *, templates: bool, unmaintained: frozenset[str]) -> bool:
        """Make the tables against which everything is compiled if what they rest on has changed; return whether it has."""
        families = _unknown_families(self._families, self._known_families)
        slicing = self._settings[3] if self._settings is not None and not templates else self._slicing()
        settings = platforms, mig_strategy, families, slicing, unmaintained
        if settings == self._settings:
            return False
        self._settings = settings
        self._compiler = Compiler(self._catalog, tables_of(self._catalog, *settings))
        self.costs = DeviceCosts(self._prices)
        return True

    def _slicing(self) -> tuple[NodeTemplate, ...]:
        """Return the templates that name slices or sharing, so that the tables rest on them."""
        return tuple(t for t in self._acting_templates() if t.sharing or t.mig_profiles)

    def _acting_templates(self) -> list[NodeTemplate]:
        return sorted((t for t in self.acting.values() if isinstance(t, NodeTemplate)), key=lambda t: t.name)

    def _compile_all(self) -> None:
        acting = sorted((p for p in self.acting.values() if isinstance(p, Policy)), key=lambda p: p.id)
        self._ids = [policy.id for policy in acting]
        self._policies = [self._compiler.policy(policy, self._max_mode) for policy in acting]
        self._own = by_namespace(self._policies)

    def _compile(self, keys: Iterable[Key]) -> None:
        """Compile these policies, each into its place in the sorted list and in that of its namespace."""
        for key in keys:
            policy, policy_id = self.acting.get(key), id_of(key)
            at = bisect_left(self._ids, policy_id)
            there = at < len(self._ids) and self._ids[at] == policy_id
            if isinstance(policy, Policy):
                self._ids[at : at + there] = [policy_id]
                self._policies[at : at + there] = [self._compiler.policy(policy, self._max_mode)]
            elif there:
                del self._ids[at], self._policies[at]
            if key[1]:
                self._gather(key[1])

    def _gather(self, namespace: str) -> None:
        first = bisect_left(self._ids, f"GPUPolicy/{namespace}/")
        last = bisect_left(self._ids, f"GPUPolicy/{namespace}0")  # "0" follows "/"
        if own := own_acting(self._policies[first:last]):
            self._own[namespace] = own
        else:
            self._own.pop(namespace, None)


def _ids(keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(sorted(map(id_of, keys)))


def _unknown_families(named: Iterable[str], known: AbstractSet[str]) -> frozenset[str]:
    """Return those of the instance families that the catalog lacks, as many as get rows of their own."""
    return frozenset(sorted(frozenset(named) - known)[:_MOST_FAMILIES])


def _instance_families(named_by: Acting) -> Iterator[str]:
    """Yield every instance family, known or not, that the policy or template names and that may get a row.

    A GPUPolicy of a namespace gets none: all namespaces share the rows and their cost, so an instance family
    that only it names is no machine.
    """
    if isinstance(named_by, Policy) and named_by.namespace is not None:
        return
    machines = [named_by.machine] if isinstance(named_by, NodeTemplate) else [named_by.require.machine, named_by.default.machine]
    for machine in machines:
        if machine.instance_families is not None:
            yield from machine.instance_families.in_
            yield from machine.instance_families.not_in


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
