"""Builds the tables: the catalog's machines, sharing variants and capacity types become rows of offers.

A host is a kind of machine; an offer is a host with one way of sharing and one capacity type. Tables are
built once per snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from catalog import Catalog, Gpu, MachineType, MigProfile, Network, Platform, Variant
from catalog.prices import prices
from kube.labels import ABSENT, ANY, NEW, Possible
from policies.facts.served_resources import Served
from policies.lru import LruCache
from policies.offers.label_readings import MOST_LABEL, other_names
from policies.offers.machine_fields import in_machine
from policies.offers.table import MOST_MEMO, Host, Offer, Table
from policies.policy import NodeTemplate


def build(
    platform: Platform,
    catalog: Catalog,
    *,
    mig_strategy: str,
    families: frozenset[str] = frozenset(),
    templates: Sequence[NodeTemplate] = (),
    first: int = 0,
) -> Table:
    """Return the table of one platform, whose rows begin at the bit ``first``.

    ``families`` are instance families that policies name and the catalog lacks: each gets a row of unknown
    model, so that naming it excludes or admits it.
    """
    hosts = list(hosts_of(platform, catalog, families))
    offers = (*_offers(platform, catalog, hosts, mig_strategy, templates), *_of_other_vendors(platform, catalog, hosts, families))
    return index(platform, offers, catalog, first)


def tables_of(
    catalog: Catalog,
    platforms: Sequence[str],
    mig_strategy: str,
    families: frozenset[str],
    templates: Sequence[NodeTemplate],
    unmaintained: frozenset[str],
) -> dict[str, Table]:
    """Return the tables of these platforms, or of all if none are given, in the catalog's order: side by side in one bit space, each with
    the values known to all. Label keys that are ``unmaintained`` are not written."""
    built: dict[str, Table] = {}
    first = 0
    for name, platform in catalog.platforms.items():
        if not platforms or name in platforms:
            built[name] = build(platform, catalog, mig_strategy=mig_strategy, families=families, templates=templates, first=first)
            built[name].unmaintained = unmaintained
            first += len(built[name].offers)
    share_known(built.values())
    return built


def index(platform: Platform, offers: tuple[Offer, ...], catalog: Catalog, first: int = 0) -> Table:
    """Return a table over these rows; ``share_known`` fills in ``known``."""
    keys = {key for offer in offers for key in offer.labels}
    values: dict[str, dict[Possible, int]] = {key: {} for key in keys}
    groups: dict[str, dict[str, int]] = {"resource": {}, "vendor": {}, "capacity": {}, "sharing": {}, "template": {}, "arch": {}}
    profiles: dict[tuple[str, str], MigProfile] = {}
    sliced: dict[tuple[str, str], int] = {}
    networks: dict[Network, int] = {}
    unknown = 0
    for i, offer in enumerate(offers):
        bit = 1 << i
        for key in keys:
            possible = offer.labels.get(key, ABSENT)
            values[key][possible] = values[key].get(possible, 0) | bit
        unknown |= bit if offer.host.gpu is None else 0
        for group, name in _group_names(offer):
            groups[group][name] = groups[group].get(name, 0) | bit
        if offer.sharing == "Exclusive" and offer.host.network:
            network = offer.host.count, tuple(sorted(offer.host.network.items()))
            networks[network] = networks.get(network, 0) | bit
        if offer.sharing == "MIG" and offer.profile is not None:
            of_slice = offer.profile, offer.resource
            sliced[of_slice] = sliced.get(of_slice, 0) | bit << first
            if offer.host.gpu is not None and of_slice not in profiles:
                profiles[of_slice] = next(p for p in offer.host.gpu.mig if p.name == offer.profile)
    by = {group: {name: rows << first for name, rows in found.items()} for group, found in groups.items()}
    return Table(
        platform=platform,
        offers=offers,
        first=first,
        all=(1 << len(offers)) - 1 << first,
        known={},
        by_resource=by["resource"],
        by_vendor=by["vendor"],
        by_capacity=by["capacity"],
        by_sharing=by["sharing"],
        by_network={network: rows << first for network, rows in networks.items()},
        templated=by["template"],
        by_arch=by["arch"],
        unknown=unknown << first,
        further=sum(1 << i for i, offer in enumerate(offers) if offer.further) << first,
        slices={of_slice: (profile, sliced[of_slice]) for of_slice, profile in profiles.items()},
        values={key: {possible: rows << first for possible, rows in classes.items()} for key, classes in values.items()},
        resource=catalog.resource,
        other_names=other_names(platform, catalog),
    )


def _group_names(offer: Offer) -> Iterator[tuple[str, str]]:
    if offer.resource:
        yield "resource", offer.resource
    yield "vendor", offer.host.vendor
    yield "capacity", offer.capacity
    yield "sharing", offer.sharing
    if offer.template is not None:
        yield "template", offer.template
    if offer.host.arch is not None:
        yield "arch", offer.host.arch


def share_known(tables: Iterable[Table]) -> None:
    """Give every table the values of all tables, so that a type of another cloud is known, though not
    available here."""
    tables = list(tables)
    known: dict[str, set[str]] = {}
    for table in tables:
        for key, classes in table.values.items():
            known.setdefault(key, set()).update(
                v for possible in classes for v in possible if v is not None and v != "?" and not v.endswith("*")
            )
    frozen = {key: frozenset(values) for key, values in known.items()}
    listed = frozenset(name for table in tables for name in table.by_resource)
    for table in tables:
        table.known, table.listed = frozen, listed


# --- offers: machines times sharing times capacity ----------------------------------------------------------


def _offers(
    platform: Platform, catalog: Catalog, hosts: Sequence[Host], strategy: str, templates: Sequence[NodeTemplate]
) -> Iterator[Offer]:
    scheme = catalog.schemes[platform.sharing]
    profiles = sorted({p.name for gpu in catalog.gpus for p in gpu.mig})
    for host in hosts:
        for variant in scheme.variants:
            if variant.vendor != host.vendor or variant.strategy not in (None, strategy):
                continue
            for profile in _profiles(platform, host, profiles) if variant.per_profile else (None,):
                resource = _resource(variant, host, profile, catalog)
                for template in _where_it_exists(platform, host, variant, resource, profile, templates, catalog):
                    yield from _capacities(platform, host, variant, resource, profile, template)


def _profiles(platform: Platform, host: Host, every: Sequence[str]) -> Sequence[str]:
    if host.gpu is None:
        return every
    names = [p.name for p in host.gpu.mig]
    return [name for name in names if name in platform.partition_sizes.get(host.gpu.model, names)]


def _in_name(profile: str) -> str:
    return profile.replace("+", ".")


def _resource(variant: Variant, host: Host, profile: str | None, catalog: Catalog) -> str:
    if variant.resource is None:
        return host.resource
    if profile is None:
        return variant.resource
    renamed = catalog.renamed.get(profile) if variant.sharing == "MIG" else None
    return renamed or variant.resource.replace("{profile}", _in_name(profile))


def _where_it_exists(
    platform: Platform,
    host: Host,
    variant: Variant,
    resource: str,
    profile: str | None,
    templates: Sequence[NodeTemplate],
    catalog: Catalog,
) -> Iterator[str | None]:
    """Yield None if the variant exists on the platform's own nodes, else the names of the templates on whose
    nodes it does."""
    if _too_long(platform, host, variant, profile):
        return
    sliced = variant.sharing == "MIG" or variant.per_profile or variant.resource is not None
    if platform.makes_slices or not sliced or resource in platform.slices:
        yield None
        return
    for template in templates:
        names_it = _in_name(profile) in map(_in_name, template.mig_profiles) if profile else variant.sharing in template.sharing
        if names_it and in_machine(host, template.machine, catalog) and (not template.vendors or host.vendor in template.vendors):
            yield template.name


def _too_long(platform: Platform, host: Host, variant: Variant, profile: str | None) -> bool:
    """Return whether GFD's product label would be longer than a label value may be, so that no node can have
    it."""
    products = host.attributes.get("product", ())
    suffix = variant.suffix.replace("{profile}", _in_name(profile or ""))
    return bool(suffix) and platform.cloud is None and any(p and len(p + suffix) > MOST_LABEL for p in products)


def _capacities(
    platform: Platform, host: Host, variant: Variant, resource: str, profile: str | None, template: str | None
) -> Iterator[Offer]:
    suffix = variant.suffix.replace("{profile}", _in_name(profile or ""))
    labels = {key: _label(host, attribute, suffix) for key, attribute in platform.labels.items()}
    for key, attribute in platform.after_boot.items():  # written by GFD, which a cluster need not have
        labels[key] = tuple(dict.fromkeys((*_label(host, attribute, suffix), None)))
    if platform.cloud is not None:
        labels.setdefault(platform.anchor, ANY)
    for key, possible in variant.labels.items():
        labels[key] = tuple(v.replace("{profile}", _in_name(profile or "")) if v else v for v in possible)
    for capacity, of_capacity, further in platform.capacities():
        on_node = labels | {key: (of_capacity[key],) if key in of_capacity else ABSENT for key in platform.capacity_keys}
        yield Offer(
            host=host,
            resource=resource,
            sharing=variant.sharing,
            capacity=capacity,
            further=further,
            profile=profile,
            template=template,
            labels=on_node,
        )


def _label(host: Host, attribute: str, suffix: str) -> Possible:
    vendor, _, name = attribute.rpartition(":")
    if vendor and vendor != host.vendor:
        return ABSENT
    possible = host.attributes.get(name, NEW if host.gpu is None else ABSENT)
    if name == "product" and suffix:
        return tuple(f"{v}{suffix}" if v and v not in ("*", "?") else v for v in possible)
    return possible


def _of_other_vendors(platform: Platform, catalog: Catalog, hosts: Sequence[Host], families: frozenset[str]) -> Iterator[Offer]:
    """Yield offers for vendors whose devices no machine of the platform is known to have: their models and an
    unknown one."""
    here = {host.vendor for host in hosts}
    vendors = dict.fromkeys(r.vendor for r in catalog.resources if r.vendor not in here and r.kind != "dra")
    for vendor in vendors:
        for gpu in (g for g in catalog.gpus if g.vendor == vendor):
            host = Host(vendor=vendor, gpu=gpu, family=None, count=None, resource="", attributes=unlisted(platform, gpu), name=gpu.model)
            yield from _capacities(platform, host, Variant(sharing="Exclusive", vendor=vendor, labels={}), "", None, None)
        for family in (None, *sorted(families if platform.cloud is not None else ())):
            host = unknown_host(vendor, "", family)
            yield from _capacities(platform, host, Variant(sharing="Exclusive", vendor=vendor, labels={}), "", None, None)


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
                usd_per_hour=machine.usd_per_hour,
                arch=machine.arch,
                uncounted=platform.name in machine.uncounted,
            )
    for vendor, resource in vendors.items():
        yield unknown_host(vendor, resource, None)
        for family in sorted(families if platform.cloud is not None else ()):
            yield unknown_host(vendor, resource, family)


def _product_hosts(catalog: Catalog) -> Iterator[Host]:
    models = prices(catalog).models
    for gpu in catalog.gpus:
        if gpu.vendor in catalog.whole:
            for product in gpu.products or (None,):
                attributes = _known(gpu, types=ANY, family=None, count=None) | {"product": (product,)}
                resource = catalog.whole[gpu.vendor]
                yield Host(
                    vendor=gpu.vendor,
                    gpu=gpu,
                    family=None,
                    count=None,
                    resource=resource,
                    attributes=attributes,
                    name=product or gpu.model,
                    usd_per_hour=models.get(gpu.model),
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


def with_served(tables: Mapping[str, Table], served: Mapping[str, Served]) -> dict[str, Table]:
    """Return the tables with offers by these names too, where one has such devices: every machine of the vendor may have a
    driver, as it may have a device plugin. Rows keep their bits, so what is compiled against the tables holds."""
    return {platform: _with(table, served) for platform, table in tables.items()}


def _rows(table: Table, one: Served) -> int:
    return table.by_vendor.get(one.vendor, 0) & table.by_sharing.get(one.sharing, 0)


def _cut_by_hand(table: Table, one: Served) -> int:
    """Return, for slices of which the table has none, the rows of machines whose GPUs can be cut: how many there are is not known."""
    if one.sharing != "MIG":
        return 0
    return table.by_vendor.get(one.vendor, 0) & table.where(offer.host.gpu is None or bool(offer.host.gpu.mig) for offer in table.offers)


def _with(table: Table, served: Mapping[str, Served]) -> Table:
    """Return the table with the names that it offers. What it remembers by name is found anew."""
    listed = {name: rows for name, one in served.items() if (rows := _rows(table, one))}
    by_hand = {name: rows for name, one in served.items() if name not in listed and (rows := _cut_by_hand(table, one))}
    return replace(
        table,
        served=listed | by_hand,
        listed=table.listed.union(listed),
        stand_ins=LruCache(MOST_MEMO),
        vendors=LruCache(MOST_MEMO),
        fitting={},
    )
