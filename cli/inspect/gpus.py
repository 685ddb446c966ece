"""`berth gpus`: the catalog as plain tables; with a model, everything about it that a policy or a pod can
name.

Prices are indicative (their place and date are given under the table); a figure without a primary source is a
dash, never a guess.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from catalog import Catalog, Gpu, MachineType, MigProfile, Platform
from catalog.nearest import hint
from cli.output import stderr
from cli.output.table import OutputTable
from cli.terminal import screen
from cli.terminal.screen import PLAIN, Terminal
from documents.files import read_catalog
from documents.printable import printable

BAD_INPUT = 2
NONE = "-"
AFTER_BOOT = "Nodes of other platforms have the gfd labels too, but only after boot, so autoscalers do not know them."


def add_parser(subparsers: Any) -> None:
    """Add `gpus` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "gpus",
        help="list the GPU models in the catalog",
        description="List the GPU models in the catalog. With MODEL, show its labels, MIG slices and machines. MODEL is a model "
        "(A100-40GB) or a group (A100).",
        examples=(
            ("List all models, with MIG slices and prices", "%(prog)s"),
            ("Show labels, MIG slices and machines of a model", "%(prog)s A100-40GB"),
            ("Include the GPUs of your own file", "%(prog)s --catalog our-gpus.yaml"),
        ),
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a GPU model or a group of models")
    parser.add_argument("--catalog", metavar="FILE", help="file that extends the GPU catalog: new GPUs, labels, resource names")


def run(args: argparse.Namespace) -> int:
    """Print the table, or the model; exit code 2 for one that the catalog does not have. Raises
    CatalogFilesError."""
    catalog = read_catalog([args.catalog] if args.catalog else [])
    if args.model is None:
        print("\n".join(_overview(catalog, screen.output())))
        return 0
    found = _named(catalog, args.model)
    if not found:
        stderr.say(f'no GPU "{args.model}" in the catalog{hint(args.model, catalog.model_names, catalog.codes)}')
        return BAD_INPUT
    print("\n\n".join("\n".join(_detail(catalog, gpu, screen.output())) for gpu in found))
    return 0


def _named(catalog: Catalog, name: str) -> tuple[Gpu, ...]:
    """Return the models of that name or group; letter case is ignored here (it counts in policies)."""
    names = {known.casefold(): known for known in catalog.model_names}
    return catalog.models(names.get(name.casefold(), name))


def _overview(catalog: Catalog, screen: Terminal = PLAIN) -> Iterator[str]:
    rows = [
        (gpu.model, gpu.family, _gigabytes(gpu.memory_gb), _slices(gpu), *_price(_cheapest(catalog, gpu)))
        for gpu in sorted(catalog.gpus, key=lambda gpu: catalog.vendors.index(gpu.vendor))
    ]
    yield from OutputTable(("MODEL", "FAMILY", "MEMORY", "MIG SLICES (most on one GPU)", "USD/GPU-H", "CHEAPEST MACHINE"), rows).text(
        screen
    )
    yield ""
    yield from _price_notes(catalog)
    yield "For labels, usable memory of slices, and machines: berth gpus MODEL"


def _slices(gpu: Gpu) -> str:
    """Return ``1g.10gb(7) 1g.20gb(4)``: the plain profiles; those with attributes are on the model's own
    page."""
    return " ".join(f"{profile.name}({profile.count})" for profile in gpu.mig if profile.attribute is None) or NONE


def _cheapest(catalog: Catalog, gpu: Gpu) -> MachineType | None:
    """Return the machine with the lowest price per GPU of this model, among those with a price."""
    priced = [machine for machine in catalog.machines if machine.model == gpu.model and _per_gpu(machine) is not None]
    return min(priced, key=lambda machine: _per_gpu(machine) or 0.0, default=None)


def _per_gpu(machine: MachineType) -> float | None:
    return machine.usd_per_hour / machine.count if machine.usd_per_hour and machine.count else None


def _price(machine: MachineType | None) -> tuple[str, str]:
    if machine is None:
        return NONE, NONE
    return f"{_per_gpu(machine) or 0.0:.2f}", f"{machine.cloud} {machine.type}"


def _price_notes(catalog: Catalog) -> Iterator[str]:
    where = "; ".join(catalog.prices.values())
    yield f"Prices are indicative: {printable(where)}." if where else "The catalog does not say where and when its prices are valid."


def _detail(catalog: Catalog, gpu: Gpu, screen: Terminal = PLAIN) -> Iterator[str]:
    groups = f" (group {', '.join(gpu.groups)})" if gpu.groups else ""
    memory = f", {gpu.memory_mib} MiB reported by its driver" if gpu.memory_mib else ""
    compute = f", compute capability {gpu.compute_capability}" if gpu.compute_capability else ""
    yield printable(f"{gpu.model}{groups}: {gpu.vendor}, family {gpu.family}{compute}, {_gigabytes(gpu.memory_gb)}{memory}")
    yield printable(f"resource {catalog.whole[gpu.vendor]}")
    inner = replace(screen, width=screen.width - len("  ")) if screen.width else screen
    for title, lines in (
        ("LABELS", _labels(catalog, gpu, inner)),
        ("MIG", _mig(catalog, gpu, inner)),
        ("MACHINES", _machines(catalog, gpu, inner)),
    ):
        yield ""
        yield screen.paint("strong", title)
        yield from (f"  {line}" for line in lines)


def _labels(catalog: Catalog, gpu: Gpu, screen: Terminal) -> list[str]:
    rows = [
        (platform.name, key, " ".join(values)) for platform in catalog.platforms.values() for key, values in _values(catalog, platform, gpu)
    ]
    return [*OutputTable(("PLATFORM", "LABEL", "VALUES"), rows).text(screen), AFTER_BOOT] if rows else ["none known"]


def _values(catalog: Catalog, platform: Platform, gpu: Gpu) -> Iterator[tuple[str, list[str]]]:
    """Yield the labels that identify this model on the platform, with every value that its nodes may have."""
    machines = [machine for machine in catalog.machines if _is_made(machine, gpu, platform)]
    if not machines and platform.cloud is not None:
        return
    for key, shown in platform.labels.items():
        vendor, _, attribute = shown.rpartition(":")
        values = [value for value in _attribute(attribute, gpu, machines) if value] if vendor in ("", gpu.vendor) else []
        if values:
            yield key, list(dict.fromkeys(values))


def _is_made(machine: MachineType, gpu: Gpu, platform: Platform) -> bool:
    return machine.model == gpu.model and machine.cloud == platform.cloud and platform.name not in machine.not_on


def _attribute(name: str, gpu: Gpu, machines: Iterable[MachineType]) -> Iterator[str | None]:
    """Yield the values that nodes of this model have for an attribute (``Platform.labels``)."""
    of_gpu = {"product": gpu.products, "gpuFamily": (gpu.family,), "vendor": (gpu.vendor,)}
    if name in of_gpu:
        yield from of_gpu[name]
        return
    for machine in machines:
        own = {"type": machine.type, "family": machine.family, "count": None if machine.count is None else str(machine.count)}
        yield own[name] if name in own else machine.attributes.get(name)


def _mig(catalog: Catalog, gpu: Gpu, screen: Terminal) -> list[str]:
    if not gpu.mig:
        return ["none"]
    rows = [
        (profile.name, _resource(catalog, profile), str(profile.count), _gigabytes(profile.memory_gb), _mebibytes(profile.usable_mib))
        for profile in gpu.mig
    ]
    return OutputTable(("PROFILE", "RESOURCE", "MOST", "NOMINAL", "USABLE"), rows).text(screen)


def _resource(catalog: Catalog, profile: MigProfile) -> str:
    return catalog.renamed.get(profile.name, profile.resource)


def _machines(catalog: Catalog, gpu: Gpu, screen: Terminal) -> list[str]:
    machines = [machine for machine in catalog.machines if machine.model == gpu.model]
    if not machines:
        return ["none known"]
    rows = [
        (machine.cloud, machine.type or f"{machine.family} (any)", machine.family or NONE, _count(machine), *_prices(machine))
        for machine in machines
    ]
    return [*OutputTable(("CLOUD", "TYPE", "FAMILY", "GPUS", "USD/H", "USD/GPU-H"), rows).text(screen), *_price_notes(catalog)]


def _count(machine: MachineType) -> str:
    return NONE if machine.count is None else str(machine.count)


def _prices(machine: MachineType) -> tuple[str, str]:
    each = _per_gpu(machine)
    return (NONE, NONE) if each is None else (f"{machine.usd_per_hour:.2f}", f"{each:.2f}")


def _gigabytes(number: int | None) -> str:
    return NONE if number is None else f"{number} GB"


def _mebibytes(number: int | None) -> str:
    return NONE if number is None else f"{number} MiB"
