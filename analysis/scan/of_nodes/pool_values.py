"""Values of NodePools by which no machine can be bought: a family, type or GPU name that does not exist, though it is
written as those of GPU machines are.

The catalog has GPU machines alone, and may be older than a cloud's newest ones. A value is therefore called wrong only if

- but for upper and lower case, or Azure's ``Standard_``, it is a name that is known;
- it is a known name of another kind: a type or a GPU's name where a family is wanted, a family in place of a type;
- it has the form of a GPU machine's name in a generation or series of which the catalog has others, and, on EC2, of which
  newer ones exist: to the newest generation types are still added;
- or it is a GPU's name written with more words than the label has (``nvidia-tesla-t4``).

Anything else, such as ``m5`` or a family that nobody has heard of, may exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from analysis.scan.finding import Finding, FindingSubject
from analysis.scan.of_nodes.node_pools import categories
from analysis.scan.seen import ScannedCluster
from catalog import Catalog, MachineType, Platform
from catalog.nearest import nearest, of_model
from policies.facts.platform_detection import Detector

_GPU_NAMES = ("gpuName", "skuGpuName")
_EC2 = re.compile(r"([a-z]+)(\d)(?!\d).*")
"""A family of EC2: letters of its category, then one digit, its generation (EC2 user guide, instance type naming)."""
_AZURE = re.compile(r"(?:standard_)?(n[a-z]*?)(\d+)([a-z].*)?")
"""A size of Azure's N series: its letters, the number of cores, its features and version."""


def find(seen: ScannedCluster) -> Iterator[Finding]:
    """Yield a finding for each requirement of a NodePool that names machines which do not exist."""
    detector = Detector(seen.catalog)
    for raw in seen.cluster.nodepools:
        name = raw["metadata"]["name"]
        facts = seen.cluster.facts.nodepools.get(name)
        platform = None if facts is None else seen.catalog.platforms.get(detector.of_pool(facts).platform)
        if facts is None or platform is None:
            continue
        known = _MachineNames(platform, seen.catalog)
        for key, operator, values in facts.requirements:
            wrong = known.wrong(key, values) if operator == "In" else {}
            if wrong:
                given: dict[str, str | int | tuple[str, ...]] = {"key": key, "unknown": tuple(wrong), "nearest": tuple(wrong.values())}
                given["all"] = int(len(wrong) == len(set(values)))
                yield Finding(kind="pool-unknown-machine", where=FindingSubject("NodePool", "", name), values=given)


class _MachineNames:
    """The names of a platform's machines."""

    def __init__(self, platform: Platform, catalog: Catalog) -> None:
        self._platform, self._catalog = platform, catalog
        self._machines = [machine for machine in catalog.machines if machine.cloud == platform.cloud]
        self._families = sorted({machine.family for machine in self._machines if machine.family})
        self._types = sorted({one for machine in self._machines for one in (machine.type, *machine.types) if one})

    def wrong(self, key: str, values: Sequence[str]) -> Mapping[str, str]:
        """Return those of the values that no machine has, each with the nearest that one has."""
        attribute = self._platform.labels.get(key, "").rpartition(":")[2]
        known = self._named(attribute)
        found = {value: self._nearest(attribute, value, known) for value in sorted(set(values) - set(known))} if known else {}
        return {value: near for value, near in found.items() if near}

    def _named(self, attribute: str) -> Sequence[str]:
        if attribute == "family":
            return self._families
        if attribute == "type":
            return self._types
        if attribute == "category":
            return sorted(categories(self._platform))
        return sorted({machine.attributes.get(attribute, "") for machine in self._machines} - {""}) if attribute in _GPU_NAMES else ()

    def _nearest(self, attribute: str, value: str, known: Sequence[str]) -> str:
        folded = {one.lower(): one for one in known}
        if value.lower() in folded:
            return folded[value.lower()]
        if attribute == "category":
            return ""
        if attribute in _GPU_NAMES:
            codes = self._catalog.codes
            return nearest(value, known, codes) or next(iter(of_model(value, known, codes)), "")
        if self._platform.cloud == "azure":
            return self._of_azure(value.lower(), folded)
        return self._family(value.lower()) if attribute == "family" else self._type(value.lower())

    def _family(self, value: str) -> str:
        family, dot, _ = value.partition(".")
        if dot:
            return family if family in self._families else ""
        with_gpu = [machine.family for machine in self._machines if self._is_model(value, machine)]
        if with_gpu and not _EC2.fullmatch(value):
            return with_gpu[0] or ""
        return self._of_generation(value)

    def _is_model(self, value: str, machine: MachineType) -> bool:
        return machine.attributes.get("gpuName") == value and machine.family is not None

    def _of_generation(self, family: str) -> str:
        """Return the family of the same category and generation that is nearest, if machines of a newer one are known."""
        found = _EC2.fullmatch(family)
        if found is None or found[1] not in categories(self._platform):
            return ""
        alike = [(one, at[2]) for one in self._families if (at := _EC2.fullmatch(one)) and at[1] == found[1]]
        same = [one for one, generation in alike if generation == found[2]]
        if not same or max(generation for _, generation in alike) <= found[2]:
            return ""
        return nearest(family, same) or same[0]

    def _type(self, value: str) -> str:
        family, dot, size = value.partition(".")
        right = family if family in self._families else self._of_generation(family)
        if not right or (dot and right == family and not self._of_generation(family)):
            return ""  # a size that may be new
        of_family = [one for one in self._types if one.startswith(f"{right}.")]
        return nearest(f"{right}.{size}", of_family) or min(of_family, key=lambda one: ("metal" in one, len(one), one), default="")

    def _of_azure(self, value: str, folded: Mapping[str, str]) -> str:
        found = _AZURE.fullmatch(value)
        if found is None:
            return ""
        alike = {one: int(at[2]) for one in folded if (at := _AZURE.fullmatch(one)) and (at[1], at[3]) == (found[1], found[3])}
        near = min(alike, key=lambda one: (abs(alike[one] - int(found[2])), one), default="")
        return folded.get(near, "")
