"""Compare products, MIG profiles, resource names and keys of the catalog with device plugins, drivers and schedulers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

import yaml

from documents.files import read_catalog
from tests.catalog.compare.machines import Raw
from tests.catalog.compare.modules import Module
from tests.catalog.compare.rows import Comparison, Rows

MIG_PARTED, AMD_PLUGIN = "github.com/NVIDIA/mig-parted", "github.com/ROCm/k8s-device-plugin"
INTEL_PLUGIN, HAMI = "github.com/intel/intel-device-plugins-for-kubernetes", "github.com/Project-HAMi/HAMi"
KARPENTER, KUEUE, API = "sigs.k8s.io/karpenter", "sigs.k8s.io/kueue", "k8s.io/api"
KAI = "github.com/kai-scheduler/KAI-scheduler"


def mig_profiles(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare how many slices of one profile fit on a GPU with NVIDIA's default configuration."""
    ours: dict[str, set[int]] = {}
    for profiles in raw["migSets"].values():
        for profile, count in profiles["profiles"].items():
            ours.setdefault(profile, set()).add(count)
    theirs: dict[str, set[int]] = {}
    for devices in yaml.safe_load(module.text("*config-default.yaml"))["mig-configs"].values():
        for entry in devices:
            if len(slices := entry.get("mig-devices") or {}) == 1:
                for profile, count in slices.items():
                    theirs.setdefault(profile, set()).add(count)
    shared = {profile: {"count": sorted(counts & ours.get(profile, counts)) or sorted(counts)} for profile, counts in theirs.items()}
    counts = {profile: {"count": sorted(counts & theirs.get(profile, counts)) or sorted(counts)} for profile, counts in ours.items()}
    yield Comparison(section="migSets", source=source, ours=counts, theirs=shared, lists=True)


def amd_products(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare AMD's products with the marketing names by which its labeller names Instinct accelerators.

    A name with a slash is no label value: such nodes have another one, from the board.
    """
    names = re.findall(r"^\w+,\s*\w+,\s*(AMD Instinct [^/\n]+?)\s*$", module.text("*amdgpu.ids"), re.MULTILINE)
    yield Comparison(
        section="gpus", source=source, ours=_products(raw, "amd"), theirs=_named(name.replace(" ", "_") for name in names), lists=True
    )


def intel_products(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare Intel's products with those of its rules for labels."""
    names = re.findall(r'gpu\.intel\.com/product:?\s*"?=?([A-Za-z]\w+)', module.text("*platform-labeling-rules.yaml"))
    yield Comparison(section="gpus", source=source, ours=_products(raw, "intel"), theirs=_named(names), lists=True)


def _products(raw: Raw, vendor: str) -> Rows:
    return _named(product for gpu in raw["gpus"] if gpu["vendor"] == vendor for product in gpu.get("products", ()))


def _named(names: Iterator[str] | list[str]) -> Rows:
    return {name: {} for name in names}


def hami_resources(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare the resource names of HAMi's devices with those that the catalog knows: as accelerators, parts of them, or as none."""
    text = module.text("charts/hami/*.yaml")
    names = set(re.findall(r'(?:[rR]esource\w*[nN]ame\w*|resource\w*|commonWord)["\s:]+"?([a-z0-9.-]+\.[a-z]+/[A-Za-z0-9.-]+)', text))
    catalog = read_catalog()
    none = [record["name"] for record in raw["notAccelerators"]]
    known: Rows = {
        name: {}
        for name in names
        if catalog.resource(name) is not None or catalog.measure(name) is not None or any(fnmatchcase(name, glob) for glob in none)
    }
    yield Comparison(section="resources", source=source, ours=known, theirs={name: {} for name in names}, lists=True)


def karpenter_keys(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare the taints that nobody may tolerate, and the labels' older names, with Karpenter's."""
    taints = re.findall(r'TaintKey\s*=\s*apis\.Group \+ "(/[^"]+)"', module.text("pkg/apis/v1/taints.go"))
    ours: Rows = {record["key"]: {} for record in raw["neverTolerate"]}
    yield Comparison(section="neverTolerate", source=source, ours=ours, theirs={f"karpenter.sh{key}": {} for key in taints}, lists=True)
    aliases = re.search(r"NormalizedLabels = map\[string\]string\{(.*?)\}", module.text("pkg/apis/v1/labels.go"), re.DOTALL)
    assert aliases is not None
    keys = [name.removeprefix("v1.").strip('"') for name in re.findall(r"^\s*(\S+):", aliases[1], re.MULTILINE)]
    older: Rows = {record["old"]: {} for record in raw["labelAliases"]}
    theirs: Rows = {_LABEL_CONSTANTS.get(key, key): {} for key in keys}
    yield Comparison(section="labelAliases", source=source, ours=older, theirs=theirs, lists=True)


_LABEL_CONSTANTS = {
    "LabelFailureDomainBetaZone": "failure-domain.beta.kubernetes.io/zone",
    "LabelFailureDomainBetaRegion": "failure-domain.beta.kubernetes.io/region",
    "LabelInstanceType": "beta.kubernetes.io/instance-type",
}
"""Constants of k8s.io/api/core/v1 that Karpenter's table uses."""


def well_known_taints(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare Kubernetes' own taints with those that nobody may tolerate."""
    names = re.findall(r'Taint\w+\s*=\s*"([a-z.]+/[a-z-]+)"', module.text("core/v1/well_known_taints.go"))
    globs = [record["key"] for record in raw["neverTolerate"]]
    ours: Rows = {name: {} for name in names if any(name == glob or (glob.endswith("/*") and name.startswith(glob[:-1])) for glob in globs)}
    yield Comparison(section="neverTolerate", source=source, ours=ours, theirs={name: {} for name in names}, lists=True)


def kueue_keys(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare the keys of Kueue's domain with its constants. Keys that an older version does not have are no difference."""
    text = "\n".join(
        body for name, body in module.texts("apis/*.go", "pkg/controller/*.go", "pkg/constants/*.go") if not name.endswith("_test.go")
    )
    yield _keys(raw, "kueue.x-k8s.io/", re.findall(r'= "kueue\.x-k8s\.io/([a-z-]+)"', text), source)


def kai_keys(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare the keys of KAI's domain with its constants."""
    text = "\n".join(body for name, body in module.texts("pkg/*.go") if not name.endswith("_test.go"))
    yield _keys(raw, "kai.scheduler/", re.findall(r'= "kai\.scheduler/([a-z-]+)"', text), source)


def _keys(raw: Raw, prefix: str, names: list[str], source: str) -> Comparison:
    record = next(record for record in raw["reservedKeys"] if record["prefix"] == prefix)
    ours: Rows = {prefix + key: {} for listed in ("labels", "annotations", "others") for key in record.get(listed, ())}
    return Comparison(section="reservedKeys", source=source, ours=ours, theirs={prefix + name: {} for name in names}, lists=True)
