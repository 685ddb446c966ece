"""Names of extended resources that look like accelerators and are in no list: pods that ask by one may never
reach Berth.

Device plugins can be configured to rename what they offer, other vendors have names of their own, and a
DeviceClass may give its devices any name (``extendedResourceName``, KEP-5004). A webhook's match condition
must list each name, so an unlisted one is reported instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from catalog import LONGEST_NAME, Catalog, Resource
from catalog.resources import OF_A_CLASS
from policies.messages import phrase
from policies.verdict import Remark

if TYPE_CHECKING:
    from policies.facts.cluster_facts import ClusterFacts

WORD = (
    r"(?<![a-z])(?:[a-z]{0,2}gpu|[a-z]?(?:npu|tpu|xpu|hpu|dcu|mlu|gcu|ppu|vpu)|v?cuda|mig|accelerator|gaudi|neuron(?:core|device)?|ascend|trainium)"
    r"(?:s|num)?(?![a-z])"
)
"""The names that vendors have for their devices, as a word of its own: ``gpu-shared``, ``vgpu``,
``MI300X.gpu``, ``dcunum``, ``Ascend910``."""
_WORD = re.compile(WORD)
_WORD_OF_BYTES = re.compile(WORD.encode())
_CORES = (
    b"gpu",
    b"npu",
    b"tpu",
    b"xpu",
    b"hpu",
    b"dcu",
    b"mlu",
    b"gcu",
    b"ppu",
    b"vpu",
    b"cuda",
    b"mig",
    b"accelerator",
    b"gaudi",
    b"neuron",
    b"ascend",
    b"trainium",
)
"""Every match of ``WORD`` contains one of these, at most ``_LONGEST_PREFIX`` letters after its start. ``bytes.find`` reaches
them a hundred times faster than the expression does."""
_LONGEST_PREFIX = 2
_MOST_CORES = 2_000
"""Occurrences of one core that are looked at. A text with more, none of them a word, is written to be slow to read."""
_QUALIFIED = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def is_extended(name: str) -> bool:
    """Return whether a pod may ask for it as an extended resource (k8s.io/kubernetes
    pkg/apis/core/v1/helper IsExtendedResourceName)."""
    native = name.partition("/")[0].endswith("kubernetes.io") and not name.startswith(OF_A_CLASS)
    return len(name) <= LONGEST_NAME and not native and bool(_QUALIFIED.fullmatch(name)) and not name.startswith("requests.")


def looks_like_one(name: str, catalog: Catalog) -> bool:
    """Return whether a resource name looks like an accelerator: by a word, or by the domain of a vendor
    that makes nothing else."""
    by_word = _WORD.search(name.lower()) is not None
    if not by_word and not f".{name.partition('/')[0]}".endswith(_suffixes(catalog.accelerator_domains)):
        return False
    return not any(fnmatchcase(name.lower(), glob) for glob in catalog.not_accelerators)


def may_contain_name(text: bytes) -> bool:
    """Return whether a text contains a name that looks like an accelerator's, in letters of any case. A text
    that contains parts of such names too often to look at each is taken to contain one."""
    lower = text.lower()
    return any(_contains_word_around(core, lower) for core in _CORES)


def _contains_word_around(core: bytes, lower: bytes) -> bool:
    position = -1
    for _ in range(_MOST_CORES):
        position = lower.find(core, position + 1)
        if position < 0:
            return False
        if any(_WORD_OF_BYTES.match(lower, max(0, position - prefix)) for prefix in range(_LONGEST_PREFIX + 1)):
            return True
    return True


@lru_cache(1)
def _suffixes(domains: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f".{domain}" for domain in domains)


_PART = re.compile(r"(?:mem|memory|cores?|percentage|percent|ratio)$")
"""Endings of the names for amounts of a part of a device, where no list measures them
(``Catalog.measures``): ``acme.example/gpu-mem: 8``."""


def is_unknown(resource: Resource) -> bool:
    """Return whether the resource is recognised by the look of its name alone."""
    return resource.kind == "other" and not resource.vendor


def is_part(resource: Resource) -> bool:
    """Return whether an amount of it is no number of devices, but the part of one or of several that is
    asked for."""
    return resource.kind == "other" and is_unknown(resource) and _PART.search(resource.name) is not None


def unknown(name: str, rule: str = "", policies: tuple[str, ...] = ()) -> Remark:
    """Return the remark for the platform team about such a name that a pod asks for."""
    return Remark(code="BERTH-230", found=phrase("text", name=name), rule=rule, policies=policies)


def overlooked(facts: ClusterFacts, catalog: Catalog) -> tuple[str, ...]:
    """Return the names in a cluster, on nodes or DeviceClasses, that may be accelerators and are not in
    the catalog; sorted."""
    names = {*_of_nodes(facts, catalog), *_of_classes(facts, catalog)}
    return tuple(sorted(name for name in names if is_extended(name) and catalog.resource(name) is None and catalog.measure(name) is None))


def _of_nodes(facts: ClusterFacts, catalog: Catalog) -> Iterator[str]:
    offered = {name for names in set(facts.resources.values()) for name in names}
    yield from (name for name in offered if looks_like_one(name, catalog))


def _of_classes(facts: ClusterFacts, catalog: Catalog) -> Iterator[str]:
    """Yield names whatever they look like: the driver identifies the devices, and an unknown driver may be
    an accelerator's."""
    for known in facts.device_classes.values():
        if known.extended and catalog.is_accelerator_driver(known.driver):
            yield known.extended
