"""Denials that have nothing to do with where a pod runs."""

from __future__ import annotations

from typing import Any

from kube.taints import Taint, TolerationPattern
from policies.policy import DeviceLimit, MachineFields
from tests.reference import pods
from tests.reference.case import FOREVER, Case
from tests.reference.tolerations import grants, tolerates

Raw = dict[str, Any]


class Denials(Case):
    def unreadable(self) -> set[str]:
        duration, size, out = self.annotations.get("berth.dev/expected-duration"), self.annotations.get("berth.dev/mig-slice"), set()
        if duration is not None and (pods.duration(duration) or 0) <= 0:
            out.add("BERTH-151")
        sizes = {f"{p.memory_gb}gb" for gpu in self.catalog.gpus for p in gpu.mig}
        if size is not None and size not in {*sizes, "none"}:
            out.add("BERTH-151")
        opted = [o.strip() for o in self.annotations.get("berth.dev/opt-out", "").split(",") if o.strip()]
        return out | ({"BERTH-151"} if any(o != "grace" for o in opted) else set())

    def mismatches(self) -> set[str]:
        out: set[str] = set()
        fixes = self.request.phase == "mutate" and self.row.repair and any(p.default.repair for p in self.certain)
        if any("accelerators" in p.require.requests_equal_limits for p in self.policies):
            for container in pods.containers(self.pod):
                for name in container.names():
                    if name in self.asked and container.asks(name):
                        out |= self.mismatch(container, name, fixes=fixes)
        if self.asking.anything and any("cpuAndMemory" in p.require.requests_equal_limits for p in self.policies):
            out |= set() if pods.guaranteed(self.pod) else {"BERTH-103"}
        return out

    def mismatch(self, container: pods.Container, name: str, *, fixes: bool) -> set[str]:
        limit, asked = container.side("limits").get(name), container.side("requests").get(name)
        values = [v for v in (limit, asked) if v is not None]
        read = [pods.number(v) for v in values]
        if any(v is None or v < 0 or v.denominator != 1 for v in read):
            return {"BERTH-102"}
        if asked is None or (fixes and read[0] != 0):  # to zero nothing is mended
            return set()
        return {"BERTH-101"} if limit is None or read[0] != read[1] else set()

    def counts(self) -> set[str]:
        limits = [p.require.gpus_per_pod for p in self.policies if p.require.gpus_per_pod is not None]
        out = self.above(limits, *self.asking.wholes(self.catalog)) if limits else set()
        for container in pods.containers(self.pod):
            kinds = {r.kind for n, r in self.asked.items() if container.asks(n)}
            if {"gpu", "mig"} <= kinds:
                out.add("BERTH-113")
        return out

    def above(self, limits: list[DeviceLimit], least: int, most: int | None) -> set[str]:
        """One of the three says what to type."""
        highest = min((limit.max for limit in limits if limit.max is not None), default=FOREVER)
        if least > highest:
            return {"BERTH-111"}
        if most is None:
            return {"BERTH-118"}
        if most > highest:
            return {"BERTH-111"}
        between = range(max(1, least), min(most, 10**6) + 1)
        wrong = any(limit.one_of and number not in limit.one_of for number in between for limit in limits)
        return {"BERTH-112"} if wrong else set()

    def of_no_known_class(self) -> set[str]:
        """Devices that nobody knows are inside no ``in`` and outside no ``notIn``."""
        unknown = any(r.vendor == "" for r in self.asked.values()) or any("" in claim.vendors for claim in self.asking.claims)
        if unknown and any(p.require.machine != MachineFields() for p in self.policies):
            return {"BERTH-126"}
        unplaced = {name: r for name, r in self.asked.items() if not self.world.lists(name) or self.row.affinity == "no"}
        vendors = {r.vendor for r in unplaced.values() if r.kind == "dra"}.union(*(claim.vendors for claim in self.asking.claims))
        return (
            {"BERTH-126"} if any(self.has_nothing(p.require.machine, vendor) for p in self.policies for vendor in vendors - {""}) else set()
        )

    def has_nothing(self, machine: MachineFields, vendor: str) -> bool:
        """Whether no model of a vendor, and none that the catalog lacks, is inside families, models and memory."""
        lists = [(one, of) for one, of in ((machine.families, "family"), (machine.models, "model")) if one is not None]
        if machine.gpu_memory is None and not any(one.in_ for one, _ in lists):
            return False
        for gpu in self.catalog.gpus:
            names = {"family": {gpu.family}, "model": {gpu.model, *gpu.groups}}
            right = all((not one.in_ or names[of] & set(one.in_)) and not names[of] & set(one.not_in) for one, of in lists)
            size = machine.gpu_memory
            if size is not None:
                least, most = size.min or 0, size.max or 10**6
                right = right and gpu.memory_gb is not None and least <= gpu.memory_gb <= most
            if gpu.vendor == vendor and right:
                return False
        return True

    def names(self) -> set[str]:
        out = set()
        if any(n in self.catalog.misspellings and c.asks(n) for c in pods.containers(self.pod) for n in c.names()):
            out.add("BERTH-114")
        profiles = {p.name.replace("+", ".") for gpu in self.catalog.gpus for p in gpu.mig}
        if any(r.profile is not None and r.profile not in profiles for r in self.asked.values()):
            out.add("BERTH-115")
        return out

    def forbidden(self) -> set[str]:
        standing = self.pod["spec"].get("tolerations") or ()
        for pattern in (t for p in self.policies for t in p.require.forbid_tolerations):
            if any(tolerates(t, pattern) for t in standing):
                return {"BERTH-131"}
        return set()

    def walked_past(self) -> set[str]:
        """The taints of a node that is named hold as if they were tolerated."""
        taints = self.cluster.taints.get(self.pod["spec"].get("nodeName") or "", ())
        forbidden = [t for p in self.policies for t in p.require.forbid_tolerations]
        return {"BERTH-132"} if any(grants(f, _as_pattern(t)) for t in taints for f in forbidden) else set()

    def floor(self) -> int | None:
        """The shortest grace that is required of this pod: of a service unless its author opted out, of a DaemonSet's pod none."""
        opted = "grace" in [o.strip() for o in self.annotations.get("berth.dev/opt-out", "").split(",")]
        held = {"yes": True, "opt-out": not opted, "no": False}[self.row.floor]
        return max((p.require.grace_min for p in self.policies if p.require.grace_min is not None), default=None) if held else None

    def too_short(self) -> set[str]:
        """On validate; and on both where no grace is inside all that is required."""
        least, most = self.floor(), self.least(lambda p: p.require.grace_max)
        if least is None:
            return set()
        if most is not None and least > most:
            return {"BERTH-133"}
        short = self.request.phase == "validate" and self.pod["spec"].get("terminationGracePeriodSeconds", 30) < least
        return {"BERTH-133"} if short else set()

    def endless(self) -> set[str]:
        """A pod that runs longer than it may; on validate one without an end too."""
        most, seconds = self.least(lambda p: p.require.max_runtime), self.pod["spec"].get("activeDeadlineSeconds")
        if most is None or self.row.floor == "no" or (seconds is None and self.request.phase == "mutate"):
            return set()
        return {"BERTH-143"} if seconds is None or seconds > most else set()

    def too_long(self) -> set[str]:
        out = set()
        grace, most = self.pod["spec"].get("terminationGracePeriodSeconds", 30), self.least(lambda p: p.require.grace_max)
        if most is not None and grace > most:
            out.add("BERTH-141")
        probes = [c.raw.get(p) or {} for c in pods.containers(self.pod) for p in ("livenessProbe", "startupProbe")]
        if most is not None and any((p.get("terminationGracePeriodSeconds") or 0) > most for p in probes):
            out.add("BERTH-141")
        most = self.least(lambda p: p.require.protection_max)
        for protection in self.catalog.protections if most is not None else ():
            value = pods.metadata(self.pod, protection.where).get(protection.key)
            if value is None:
                continue
            seconds: float | None
            endless = value == protection.value or (protection.any_value and value.lower() in ("true", "t", "1", "yes"))
            seconds = FOREVER if endless else pods.duration(value) if protection.durations else None
            if seconds is not None and most is not None and seconds > most:
                out.add("BERTH-142")
        return out


def _as_pattern(taint: Taint) -> TolerationPattern:
    return TolerationPattern(key=taint.key, value=taint.value, effect=taint.effect)
