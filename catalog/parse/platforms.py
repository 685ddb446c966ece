"""The shapes of platforms, of their ways of sharing GPUs, and of the taints of their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, get_args

from catalog.parse.devices import PLATFORMS
from catalog.parse.fields import LABEL, PossibleValues, struct_of
from catalog.platforms import AcceleratorTaint, GraceCap, Operator, Platform, Protection, Sharing, SharingScheme, Variant
from catalog.shapes.scalars import TEXT, Name, WordChoice
from catalog.shapes.structs import Struct, field_of, listed, mapped
from kube.labels import Expression
from kube.taints import Taint


def named_platforms(pairs: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Platform]:
    return {name: Platform(name=name, **given) for name, given in pairs}


PLATFORM = struct_of(
    Platform,
    build=dict,
    name=None,
    partition_sizes=mapped(listed(TEXT), keys=Name(noun="GPU model", known="models")),
    gpu_pools=mapped(listed(LABEL, least=1)),
    machine_keys=listed(listed(TEXT, least=1)),
    sharing=Name(noun="scheme", known="schemes"),
)


def _variants(*, resources: tuple[str, ...] = (), resource: str | None = None, **given: Any) -> tuple[Variant, ...]:
    """Return one variant for each of ``resources`` if a line names several; else one."""
    return tuple(Variant(resource=name, **given) for name in resources or (resource,))


_VARIANT = struct_of(Variant, field_of("resources", listed(TEXT)), build=_variants, labels=mapped(PossibleValues()))
_EXPRESSION = Struct(
    build=Expression,
    fields=(
        field_of("key", required=True),
        field_of("operator", WordChoice(values=get_args(Operator)), required=True),
        field_of("values", listed(TEXT)),
    ),
)
_EXPRESSIONS = mapped(listed(_EXPRESSION), keys=WordChoice(values=get_args(Sharing)))
SCHEME = struct_of(
    SharingScheme,
    variants=listed(_VARIANT, lambda variants: tuple(chain.from_iterable(variants))),
    exclude=_EXPRESSIONS,
    only=_EXPRESSIONS,
)


def _taint(*, vendor: str, platforms: tuple[str, ...] = (), **given: Any) -> AcceleratorTaint:
    return AcceleratorTaint(vendor=vendor, taint=Taint(**given), platforms=platforms)


TAINT = struct_of(
    AcceleratorTaint,
    field_of("key", required=True),
    field_of("value"),
    field_of("effect", WordChoice(values=("NoSchedule", "PreferNoSchedule", "NoExecute"))),
    build=_taint,
    taint=None,
    platforms=PLATFORMS,
)
PROTECTION = struct_of(Protection, platforms=PLATFORMS)
GRACE_CAP = struct_of(GraceCap, platforms=PLATFORMS)
