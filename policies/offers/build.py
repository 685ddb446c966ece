"""Builds the tables: the catalog's machines, sharing variants and capacity types become rows of offers.

A host is a kind of machine; an offer is a host with one way of sharing and one capacity type. Tables are
built once per snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from catalog import Catalog, MigProfile, Network, Platform, Variant
from kube.labels import ABSENT, ANY, NEW, Possible
from policies.offers.hosts import hosts_of, unknown_host, unlisted
from policies.offers.label_readings import MOST_LABEL, other_names
from policies.offers.machine_fields import in_machine
from policies.offers.table import Host, Offer, Table
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
    groups: dict[str, dict[str, int]] = {"resource": {}, "vendor": {}, "capacity": {}, "sharing": {}, "template": {}}
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
