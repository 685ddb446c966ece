"""Other names of known machines and GPUs: label values that no node of a platform is known to have.

There are two sorts, both from the catalog. One is a machine of the same cloud whose provider prefixes the
type (SageMaker HyperPod's ``ml.p5.48xlarge`` is EC2's p5.48xlarge). The other is the product label of a GPU
that is partitioned into equal slices under the strategy ``single`` (``NVIDIA-A100-SXM4-40GB-MIG-1g.5gb``):
one cluster may have nodes of both strategies, whichever is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from catalog import Catalog, Platform

MOST_LABEL = 63
"""characters of a label value (k8s.io/apimachinery validation.LabelValueMaxLength)"""
Names = Mapping[str, Mapping[str, str]]
"""label key -> another name -> the value that it stands for"""


def other_names(platform: Platform, catalog: Catalog) -> Names:
    """Return the other names by label key of this platform; only labels of machines and products have any."""
    twins = {f"{prefix}{m.type}": m.type for prefix in _prefixes(platform, catalog) for m in catalog.machines if m.type is not None}
    cut = _cut_products(platform, catalog)
    found: dict[str, Mapping[str, str]] = {}
    for key, attribute in (*platform.labels.items(), *platform.after_boot.items()):
        what = attribute.rpartition(":")[2]
        if names := twins if what == "type" else cut if what == "product" else {}:
            found[key] = names
    return found


def _prefixes(platform: Platform, catalog: Catalog) -> frozenset[str]:
    """Return the type prefixes of other platforms of the same cloud."""
    others = (p.type_prefix for p in catalog.platforms.values() if p.cloud == platform.cloud and p.cloud is not None)
    return frozenset(others) - {"", platform.type_prefix}


def _cut_products(platform: Platform, catalog: Catalog) -> Mapping[str, str]:
    """Return the products of sliced nodes by the product that is sliced, without those that are too long for a label."""
    suffixes = [v.suffix for v in catalog.schemes[platform.sharing].variants if v.per_profile and v.suffix]
    return {
        name: product
        for suffix in suffixes
        for gpu in catalog.gpus
        for profile in gpu.mig
        for product in gpu.products
        if len(name := f"{product}{suffix.replace('{profile}', profile.spelling)}") <= MOST_LABEL
    }


def is_product(platform: Platform, key: str) -> bool:
    """Return whether the label's value is a product name."""
    return (platform.labels.get(key) or platform.after_boot.get(key) or "").rpartition(":")[2] == "product"


def spelled(names: Mapping[str, str], written: Sequence[str], values: Iterable[str]) -> tuple[str, ...]:
    """Return ``values`` as they are to be written beside the author's, ``written``.

    If one of the author's is another name, the other names of ``values`` are included.
    """
    values = tuple(values)
    if not any(value in names for value in written):
        return values
    return (*values, *(other for other, value in names.items() if value in values and other not in values))
