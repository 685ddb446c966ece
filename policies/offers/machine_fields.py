"""The machine fields of policies and templates, matched with one kind of machine."""

from __future__ import annotations

from catalog import Catalog
from policies.offers.table import Host
from policies.policy import InNotIn, MachineFields


def in_machine(host: Host, machine: MachineFields, catalog: Catalog) -> bool:
    """Return whether a host satisfies the machine fields. An unknown model satisfies ``notIn``, not ``in`` or
    ``gpuMemory``."""
    gpu = host.gpu
    return (
        (machine.families is None or _in(None if gpu is None else {gpu.family}, machine.families))
        and (machine.models is None or _in(None if gpu is None else {gpu.model, *gpu.groups}, machine.models))
        and (machine.instance_families is None or _in_instance_families(host, machine.instance_families, catalog))
        and (machine.gpu_memory is None or _in_memory(host, machine.gpu_memory.min, machine.gpu_memory.max))
    )


def _in_instance_families(host: Host, wanted: InNotIn, catalog: Catalog) -> bool:
    """Return whether the host's family is inside, with or without a platform's prefix (``ml.p5``)."""
    if host.family is None:
        return _in(None, wanted)
    return _in({f"{prefix}{host.family}" for prefix in ("", *(p.type_prefix for p in catalog.platforms.values()))}, wanted)


def _in(names: set[str] | None, wanted: InNotIn) -> bool:
    if names is None:
        return not wanted.in_
    return (not wanted.in_ or not names.isdisjoint(wanted.in_)) and names.isdisjoint(wanted.not_in)


def _in_memory(host: Host, least: int | None, most: int | None) -> bool:
    if host.gpu is None or host.gpu.memory_gb is None:
        return False
    return (least is None or host.gpu.memory_gb >= least) and (most is None or host.gpu.memory_gb <= most)
