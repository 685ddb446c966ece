"""Hosts: the kinds of machines of a platform, with the possible values of their labels."""

from __future__ import annotations

from collections.abc import Iterator

from catalog import Catalog, Gpu, MachineType, Platform
from kube.labels import ABSENT, ANY, NEW, Possible
from policies.offers.table import Host


def hosts_of(platform: Platform, catalog: Catalog, families: frozenset[str]) -> Iterator[Host]:
    """Yield every machine of the platform's cloud, then per vendor the unknown model, once more for each of
    ``families``.

    On the platform without a cloud it yields one host for each product label in place of machines.
    """
    by_model = {gpu.model: gpu for gpu in catalog.gpus}
    vendors: dict[str, str] = {}
    if platform.cloud is None:
        yield from _product_hosts(catalog)
        vendors = dict(catalog.whole)
    for machine in catalog.machines:
        if machine.cloud != platform.cloud or platform.name in machine.not_on:
            continue
        gpu = by_model[machine.model]
        vendors.setdefault(gpu.vendor, machine.resource)
        known = _known(gpu, types=_types(machine, platform), family=machine.family, count=machine.count)
        name = f"{machine.family} with {machine.model}" if machine.type is None else f"{platform.type_prefix}{machine.type}"
        for left_out in (frozenset[str](), machine.optional) if machine.optional else (frozenset[str](),):
            attributes: dict[str, Possible] = {
                attribute: (value,) for attribute, value in machine.attributes.items() if attribute not in left_out
            }
            yield Host(
                vendor=gpu.vendor,
                gpu=gpu,
                family=machine.family,
                count=machine.count,
                resource=machine.resource,
                attributes=attributes | known,
                name=name,
                network=machine.network,
                uncounted=platform.name in machine.uncounted,
            )
    for vendor, resource in vendors.items():
        yield unknown_host(vendor, resource, None)
        for family in sorted(families if platform.cloud is not None else ()):
            yield unknown_host(vendor, resource, family)


def _product_hosts(catalog: Catalog) -> Iterator[Host]:
    for gpu in catalog.gpus:
        if gpu.vendor in catalog.whole:
            for product in gpu.products or (None,):
                attributes = _known(gpu, types=ANY, family=None, count=None) | {"product": (product,)}
                resource = catalog.whole[gpu.vendor]
                yield Host(
                    vendor=gpu.vendor, gpu=gpu, family=None, count=None, resource=resource, attributes=attributes, name=product or gpu.model
                )


def unlisted(platform: Platform, gpu: Gpu) -> dict[str, Possible]:
    """Return the attributes of a machine that no table has: its labels exist, with unknown values."""
    labelled = {attribute.rpartition(":")[2]: NEW for attribute in (*platform.labels.values(), *platform.after_boot.values())}
    return labelled | {"gpuFamily": (gpu.family,), "vendor": (gpu.vendor,), "manufacturer": (gpu.vendor,)}


def _types(machine: MachineType, platform: Platform) -> Possible:
    return machine.types or ANY if machine.type is None else (f"{platform.type_prefix}{machine.type}",)


def _known(gpu: Gpu, *, types: Possible, family: str | None, count: int | None) -> dict[str, Possible]:
    return {
        "type": types,
        "family": ABSENT if family is None else (family,),
        "count": ANY if count is None else (str(count),),
        "product": gpu.products or NEW,  # the label has a value that the catalog does not know
        "gpuFamily": (gpu.family,),
        "vendor": (gpu.vendor,),
        "manufacturer": (gpu.vendor,),
    }


def unknown_host(vendor: str, resource: str, family: str | None) -> Host:
    """Return a machine of a model that the catalog does not know, of the given instance family or of an
    unknown one."""
    attributes: dict[str, Possible] = {"vendor": (vendor,), "manufacturer": (vendor,), "family": NEW if family is None else (family,)}
    return Host(vendor=vendor, gpu=None, family=family, count=None, resource=resource, attributes=attributes, name="unknown")
