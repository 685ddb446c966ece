"""The shapes of GPUs, of the machines that carry them, of their resource names, and of what DRA drivers publish."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

from catalog.gpus import Gpu, MachineType, MigProfile
from catalog.parse.fields import COUNT, LABEL, REGEX, compiled, each, struct_of
from catalog.parse.records import MARKS
from catalog.platforms import Sharing
from catalog.published_devices import PublishedDevices
from catalog.resources import ResourcePattern
from catalog.shapes.scalars import TEXT, Name, PatternText, WordChoice
from catalog.shapes.structs import field_of, listed, mapped
from kube.tree import Path

_PROFILE = re.compile(r"(\d+)g\.(\d+)gb([+-][a-z]+(?:\.[a-z]+)*)?", re.ASCII)
"""A profile as nvidia-smi writes it. A compute instance of a slice (``1c.3g.20gb``) has no resource name,
so it does not match."""
PROFILES = mapped(COUNT, keys=PatternText(wanted="a MIG profile such as 1g.10gb or 1g.10gb+me", pattern=_PROFILE.pattern))
_CEL = "as|break|const|continue|else|false|for|function|if|import|in|let|loop|package|namespace|null|return|true|var|void|while"
"""Words that CEL reserves (cel-spec doc/langdef.md)."""
_ATTRIBUTE = PatternText(
    wanted="the name of an attribute or capacity such as productName",
    pattern=rf"|([a-z0-9.-]+/)?(?!({_CEL})$)[A-Za-z_][A-Za-z0-9_]{{0,31}}",
    build=lambda name: name or None,
)
"""A qualified name (k8s.io/api/resource/v1): what follows the domain is written into CEL as it is."""
PLATFORMS = listed(Name(noun="platform", known="platforms"))


def _gpu(
    *, mig: Mapping[str, int] | None = None, usable_mib: Mapping[str, int] | None = None, usable_mark: str = "", **given: Any
) -> Gpu:  # fmt: skip
    """Return a GPU, without figures of usable memory that were not read in a primary source (``docs/laws.md``, "MIG memory")."""
    figures = usable_mib if usable_mib and usable_mark == "verified" else {}
    return Gpu(mig=tuple(_profile(name, count, figures.get(name)) for name, count in (mig or {}).items()), **given)


def _profile(name: str, count: int, usable_mib: int | None) -> MigProfile:
    parts = _PROFILE.fullmatch(name)
    assert parts is not None, name
    return MigProfile(name=name, count=count, compute=int(parts[1]), memory_gb=int(parts[2]), attribute=parts[3], usable_mib=usable_mib)


def _figures_are_of_profiles(given: Mapping[str, Any], kind: str) -> Iterator[tuple[Path, str]]:
    for name in given.get("usable_mib", ()):
        if given.get("usable_mark") == "verified" and name not in given.get("mig", ()):
            yield ("usableMiB", name), "is not a MIG profile of this GPU"


GPU = struct_of(
    Gpu,
    field_of("usableMiB", mapped(COUNT), store="usable_mib"),
    field_of("usableMark", WordChoice(values=MARKS), store="usable_mark"),
    build=_gpu,
    rules=(_figures_are_of_profiles,),
    vendor=Name(noun="vendor", known="vendors"),
    memory_gb="memoryGB",
    memory_mib="memoryMiB",
    mig=PROFILES,
)
MACHINE = struct_of(
    MachineType,
    build=dict,
    cloud=Name(noun="cloud", known="clouds"),
    model=Name(noun="GPU model", known="models"),
    not_on=PLATFORMS,
    uncounted=PLATFORMS,
    network=mapped(COUNT),
    **each("vcpus pods", COUNT),
    memory_mib=("memoryMiB", COUNT),
    arch=WordChoice(values=("amd64", "arm64")),
    resource=field_of("resource"),
    attributes=field_of("attributes", mapped(LABEL)),
)


def machine(given: Mapping[str, Any], clouds: Mapping[str, re.Pattern[str]], vendor: str, whole: Mapping[str, str]) -> MachineType:
    """Return a machine of the shape ``MACHINE``; what the type's name tells by its cloud's pattern need not be written."""
    by_name = _named_attributes(clouds[given["cloud"]], given.get("type", ""))
    derived = {"family": by_name.get("family"), "resource": whole.get(vendor, ""), **given}
    return MachineType(**{**derived, "attributes": {"manufacturer": vendor, **by_name, **given.get("attributes", {})}})


def _named_attributes(pattern: re.Pattern[str], type_: str) -> dict[str, str]:
    """Return the attributes in the name of an instance type: ``p4d.24xlarge`` is family p4d, category p,
    generation 4, size 24xlarge."""
    parts = pattern.fullmatch(type_) if type_ else None
    return {key: value for key, value in parts.groupdict().items() if value is not None} if parts else {}


def _resource(*, name: str | None = None, pattern: re.Pattern[str] | None = None, **given: Any) -> ResourcePattern:
    return ResourcePattern(name=name, pattern=pattern or _anchored(re.escape(name or "")), **given)


def _anchored(pattern: str) -> re.Pattern[str]:
    return compiled(pattern, "^(?:{})$")


RESOURCE = struct_of(
    ResourcePattern,
    build=_resource,
    one_of=("name", "pattern"),
    name=field_of("name"),
    pattern=field_of("pattern", replace(REGEX, build=_anchored)),
    parts=mapped(listed(COUNT, least=1)),
)
PUBLISHED = struct_of(
    PublishedDevices,
    **each("model family type profile memory", _ATTRIBUTE),
    named="names",
    sharing=mapped(listed(TEXT), keys=WordChoice(values=get_args(Sharing))),
)
