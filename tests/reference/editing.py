"""What is edited in the end."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from kube.taints import TolerationPattern
from tests.reference import pods
from tests.reference.case import AXES, FOREVER
from tests.reference.choosing import Choosing
from tests.reference.nodes import Node
from tests.reference.tolerations import covers, grants, tolerates, toleration

Raw = dict[str, Any]


MOST_TERMS = 16
"""Where there would be more, with a copy for each platform, the first platform alone is written."""


class Editing(Choosing):
    def edit(self) -> None:
        self.add_tolerations()
        self.raise_grace()
        self.out.deadline = self.end()
        self.mark()
        self.set_resources()
        if self.row.affinity == "write" and self.world.placed:
            self.place()

    def place(self) -> None:
        """Where the pod may land in the end: never outside, and everywhere inside that can be said."""
        self.out.counts = dict(self.now)
        self.out.at_most = {name: set() for name in self.now}
        self.out.inside = {name: set() for name in self.now}
        possible = self.platforms_left(lambda n: True, self.now, self.terms)  # elsewhere some name has no offer: never landed on
        by_term = [self.left(terms=[term]) for term in self.terms]
        crowded = sum(max(1, len(alive)) for alive in by_term) > MOST_TERMS
        for term, alive in zip(self.terms, by_term, strict=True):
            for name, count in self.now.items():
                most, least = self.by_term(term, name, count, alive, possible)
                self.out.at_most[name] |= most
                self.out.inside[name] |= {n for n in least if n.platform == self.first(alive)} if crowded else least

    def first(self, platforms: set[str]) -> str:
        """The one that is written where not all can be."""
        return next((name for name in self.atlas.tables if name in platforms), "")

    def by_term(self, term: list[Raw], name: str, count: int, alive: set[str], possible: set[str]) -> tuple[set[Node], set[Node]]:
        """(never outside these, at least these) that one term selects of one resource name."""
        selected = self.atlas.landing(term)
        here = {n for n in self.offers(name, count) if n in selected}
        whole: set[Node] = set()
        if self.out.slice is not None:  # by label: a whole one where a term names a platform without such a label
            whole = {n for n in here if self.slice_resource == "nvidia.com/gpu" and not self.by_label(n) and self.in_require(n)}
            here = {n for n in here if self.in_slice(self.out.slice, self.slice_resource)(n)}
        alone = self.platforms_left(lambda n: True, self.now, [term])
        if len(alone) == 1 and self.constrained():
            here = {n for n in here if n.platform in alone}  # the term is held to the one platform on which it is possible
        most, least = set(here), set(here)
        for platform in {n.platform for n in here}:
            there = {n for n in here if n.platform == platform}
            unsure = any(self.atlas.undecided(self.atlas.tables[platform], e) for e in term)  # nobody knows what it selects
            for axis in AXES:
                inside, expressed_whole, _ = self.sayable(platform, axis, term)
                out = {n for n in there if not inside(n)}
                by_name = {n for n in out if n.sharing == "TimeSliced" and n.profile and name not in self.world.by_resource}
                shown = out - by_name if axis == "sharing" else out  # no label tells a slice that is shared
                most -= shown if platform in possible else set()
                least -= out if expressed_whole and (axis != "sharing" or not out) else there
                if axis == "sharing" and any(n.sharing == "MIG" and not inside(n) for n in self.atlas.tables[platform].nodes):
                    least -= {n for n in there if n.sharing == "TimeSliced" and n.profile}  # what keeps off slices keeps off shared ones
            if platform not in alive:  # something is left elsewhere in the term, or the term is closed
                most -= there if platform in possible and not unsure else set()
                most |= there if unsure else set()
                least -= there
            least -= there if unsure else set()
        if self.slice_resource == "nvidia.com/gpu":
            least = {n for n in least if n.gpu is not None}  # a product that nobody knows can't be named
        return most | whole, least & most

    def add_tolerations(self) -> None:
        vendors = self.asking.vendors()
        if not self.row.tolerations or (self.row.driver_only and not vendors):
            return
        granted = [t for p in self.certain if p.namespace is None for t in p.allow.tolerations]
        platforms = set(self.atlas.tables) if self.world.placed else None
        wanted: list[Raw] = []
        if any(p.default.accelerator_taints for p in self.certain):
            arch = [entry for entry in self.catalog.arch_taints if self.alone(entry.taint.value, entry.platforms)]
            for entry in (*(entry for entry in self.catalog.taints if entry.vendor in vendors), *arch):
                if not entry.platforms or platforms is None or platforms & set(entry.platforms):
                    pattern = TolerationPattern(key=entry.taint.key, value=entry.taint.value or None, effect=entry.taint.effect)
                    asked_by = [p for p in self.certain if p.default.accelerator_taints]
                    if any(p.namespace is None for p in asked_by) or any(grants(g, pattern) for g in granted):
                        wanted.append(toleration(pattern.key, pattern.value, pattern.effect))
        if self.out.template is not None:
            wanted += [toleration(t.key, t.value, t.effect) for t in self.atlas.templates[self.out.template].taints]
        tolerate = [(pattern, policy) for policy in self.certain for pattern in policy.default.tolerate]
        for pattern, policy in sorted(tolerate, key=lambda t: (t[0].key, t[0].value or "", t[0].effect or "")):
            if policy.namespace is None or any(grants(g, pattern) for g in granted):
                wanted.append(toleration(pattern.key, pattern.value, pattern.effect))
        if self.capacity_named() and self.spot_left():
            for entry in self.catalog.spot_taints:
                pattern = TolerationPattern(key=entry.taint.key, value=entry.taint.value or None, effect=entry.taint.effect)
                if (not entry.platforms or platforms is None or platforms & set(entry.platforms)) and (
                    self.capacity_named(cluster=True) or any(grants(g, pattern) for g in granted)
                ):
                    wanted.append(toleration(pattern.key, pattern.value, pattern.effect))
        standing = list(self.pod["spec"].get("tolerations") or ())
        forbidden = [t for p in self.policies for t in p.require.forbid_tolerations]
        for one in wanted:
            never = any(fnmatchcase(one["key"], glob) for glob in self.catalog.never_tolerate)
            if not never and not any(tolerates(one, f) for f in forbidden) and not any(covers(t, one) for t in standing):
                standing.append(one)
                self.out.tolerations.add((one["key"], one["operator"], one.get("value"), one.get("effect")))

    def capacity_named(self, *, cluster: bool = False) -> bool:
        """By a policy, or by the pod where a policy asks for accelerators' taints. ``cluster``: by one of the cluster's, which speaks of
        what anybody named if it asks for accelerators' taints."""
        policies = [p for p in self.policies if p.namespace is None or not cluster]
        for_taints = any(p.default.accelerator_taints for p in policies if p in self.certain)
        if for_taints and (not self.silent("capacity") or (cluster and self.capacity_named())):
            return True
        if self.named_capacity and any(self.capacity_wish(p) for p in self.named_capacity if p in policies):
            return True
        if (
            self.out.template is not None
            and self.atlas.templates[self.out.template].capacity
            and any(p in policies for p in self.template_by)
        ):
            return True
        return any(p.require.capacity or self.is_long(p.require.long_runs) for p in policies)

    def spot_left(self) -> bool:
        """In some term, for some name: each is judged by itself. Where R is written, what it says there is what the next call reads."""
        return any(
            n.capacity == "spot" for term in self.terms for name, count in self.now.items() for n in self.nodes_in(term, name, count)
        )

    def alone(self, arch: str, platforms: Sequence[str]) -> bool:
        """Whether nothing but nodes of an architecture is left on these platforms, and something is."""
        left = [n for term in self.terms for name, count in self.now.items() for n in self.nodes_in(term, name, count)]
        there = [n for n in left if n.platform in platforms]
        return bool(there) and all(n.arch == arch for n in there)

    def nodes_in(self, term: list[Raw], name: str, count: int) -> list[Node]:
        alive, selected = self.left(terms=[term]), self.atlas.landing(term)
        nodes = [n for n in self.offers(name, count) if n in selected and n.platform in alive and self.in_require(n)]
        if self.row.affinity != "write" or not self.world.placed:
            return [n for n in nodes if all(chosen(n) for chosen in self.chosen)]
        expressed = {(platform, axis): self.sayable(platform, axis, term)[2] for platform in alive for axis in AXES}
        return [n for n in nodes if all(expressed[n.platform, axis](n) for axis in AXES)]

    def raise_grace(self) -> None:
        former, default, floor = self.pod["spec"].get("terminationGracePeriodSeconds", 30), self.default_grace(), self.floor()
        seconds = former
        if former == 30 and default is not None and default >= (floor or 0):
            seconds = default
        elif floor is not None:  # 30 passes for nothing written, which a default raises
            seconds = max(former, 31 if floor == 30 > former and (default or 0) > 30 else floor)
        if seconds <= former:
            return
        self.out.grace = seconds
        probes = [c.raw[p] for c in pods.containers(self.pod) for p in ("livenessProbe", "startupProbe") if p in c.raw and former > 0]
        self.out.probes = sum("terminationGracePeriodSeconds" not in p for p in probes)

    def default_grace(self) -> int | None:
        """What nothing written is raised to: never past a maximum, a NodePool's own, or what every platform that is left grants."""
        durations = [p.default.grace for p in self.acting(self.row.grace) if p.default.grace is not None]
        if not durations or "grace" in [o.strip() for o in self.annotations.get("berth.dev/opt-out", "").split(",")]:
            return None
        limits = [p.require.grace_max for p in self.policies if p.require.grace_max is not None]
        pools = [p for n in self.nodepools() if (p := self.cluster.nodepool_grace.get(n)) is not None]
        left = {platform for term in self.terms for platform in self.left(terms=[term])} or set(self.atlas.tables)
        caps = [cap for cap in self.catalog.grace_caps if cap.capacity is None]
        grants = [min((cap.seconds for cap in caps if platform in cap.platforms), default=FOREVER) for platform in left]
        return min([max(durations), *limits, *pools, max(grants) if self.world.placed else FOREVER])

    def nodepools(self) -> set[str]:
        """The known NodePools that the terms name; all of them where they name none."""
        named = {v for term in self.terms for e in term if e["key"] == "karpenter.sh/nodepool" for v in e.get("values") or ()}
        return named & set(self.cluster.nodepool_grace) or set(self.cluster.nodepool_grace)

    def mark(self) -> None:
        durations = [FOREVER if p.default.protect_for == "Always" else p.default.protect_for for p in self.acting(self.row.annotations)]
        wanted = [w for w in durations if w is not None]
        if not wanted:
            return
        limit = self.least(lambda p: p.require.protection_max)
        for protection in self.catalog.protections:
            here = {t.platform.name for t in self.atlas.tables.values()} & set(protection.platforms)
            if (
                protection.only_judged
                or not (here or not protection.platforms or not self.world.placed)
                or protection.key in pods.metadata(self.pod, protection.where)
                or limit is not None
            ):
                continue
            self.out.marks[protection.key] = protection.value

    def set_resources(self) -> None:
        repairs = self.row.repair and any(p.default.repair for p in self.certain)
        for field_name in ("initContainers", "containers"):
            for index, raw in enumerate(self.pod["spec"].get(field_name) or ()):
                sides = self.sides(pods.Container(raw=raw, init=False, sidecar=False), repairs=repairs)
                for side in pods.SIDES:
                    self.out.resources[field_name, index, side] = sides[side]

    def sides(self, container: pods.Container, *, repairs: bool) -> dict[str, Raw]:
        out = {side: dict(container.side(side)) for side in pods.SIDES}
        renamed = self.slice_resource not in ("", "nvidia.com/gpu")
        for name in container.names():
            if name not in self.asked or not container.asks(name):
                continue
            if renamed and name == "nvidia.com/gpu":
                for side in pods.SIDES:
                    out[side].pop(name, None)
                    out[side][self.slice_resource] = "1"
            elif repairs and all(pods.is_count(out[side][name]) for side in pods.SIDES if name in out[side]):
                if name not in out["limits"]:
                    out["limits"][name] = out["requests"][name]
                elif pods.number(out["limits"][name]) and (
                    name not in out["requests"] or pods.number(out["requests"][name]) != pods.number(out["limits"][name])
                ):
                    out["requests"][name] = out["limits"][name]
        return out
