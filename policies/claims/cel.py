"""What a selector demands of one device, as a value and as CEL: each demand has one text, so that a text that is there already is
found by equality, whoever wrote it.

A text names the driver and asks whether the attribute is there before it reads it: an error while a selector is evaluated fails the
whole allocation (k8s.io/api/resource/v1 CELDeviceSelector), and what is not published is not what was demanded.
``device.attributes`` returns an empty map for an unknown domain, ``replace`` is of Kubernetes' base environment
(k8s.io/dynamic-resource-allocation/cel, k8s.io/apiserver/pkg/cel/environment). The worst text of the shipped catalog costs about 150
of the 1,000,000 that a selector may.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from policies.lru import LruCache

LONGEST = 10 * 1024
"""Bytes of an expression (k8s.io/api/resource/v1 CELSelectorExpressionMaxLength)."""
MOST = 32
"""Selectors of one request (k8s.io/api/resource/v1 DeviceSelectorsMaxSize)."""


@dataclass(frozen=True, kw_only=True)
class OneOf:
    """The attribute is one of these values, or published and none of them."""

    driver: str
    domain: str
    attribute: str
    values: tuple[str, ...]
    """Sorted, each once."""
    outside: bool = False
    """True: none of them."""
    spaces: bool = False
    """True: the values have dashes where the attribute has spaces."""

    @property
    def subject(self) -> tuple[str, ...]:
        """What it is about: demands on different subjects never imply each other."""
        return ("attribute", self.driver, self.domain, self.attribute, "spaces" if self.spaces else "")

    def admits(self, value: str) -> bool:
        """Return whether a device whose attribute has this value meets the demand."""
        return ((value.replace(" ", "-") if self.spaces else value) in self.values) != self.outside

    @functools.cached_property
    def text(self) -> str:
        """The demand as CEL."""
        value = f"device.attributes[{_quoted(self.domain)}].{self.attribute}"
        listed = f"{value}{_DASHES if self.spaces else ''} in [{', '.join(map(_quoted, self.values))}]"
        return f"device.driver == {_quoted(self.driver)} && has({value}) && {f'!({listed})' if self.outside else listed}"


@dataclass(frozen=True, kw_only=True)
class AtLeast:
    """The capacity is published and at least so many MiB."""

    driver: str
    domain: str
    capacity: str
    mebibytes: int

    @property
    def subject(self) -> tuple[str, ...]:
        """See ``OneOf.subject``."""
        return ("capacity", self.driver, self.domain, self.capacity)

    @functools.cached_property
    def text(self) -> str:
        """The demand as CEL."""
        value = f"device.capacity[{_quoted(self.domain)}].{self.capacity}"
        least = f'{value}.compareTo(quantity("{self.mebibytes}Mi")) >= 0'
        return f"device.driver == {_quoted(self.driver)} && has({value}) && {least}"


Demand = OneOf | AtLeast


def _quoted(text: str) -> str:
    """Return a text as a CEL string, whose escapes are those of JSON (cel-spec doc/langdef.md)."""
    return json.dumps(text, ensure_ascii=False)


_BEGIN = "device.driver == "
_DASHES = '.replace(" ", "-")'
_STRING = r'"(?:[^"\\]|\\.)*"'
_ONE_OF = re.compile(
    rf"device\.driver == ({_STRING}) && has\(device\.attributes\[({_STRING})\]\.(\w+)\) && "
    rf"(!\()?device\.attributes\[\2\]\.\3({re.escape(_DASHES)})? in (\[(?:{_STRING}(?:, )?)*\])\)?"
)
_AT_LEAST = re.compile(
    rf"device\.driver == ({_STRING}) && has\(device\.capacity\[({_STRING})\]\.(\w+)\) && "
    rf'device\.capacity\[\2\]\.\3\.compareTo\(quantity\("([0-9]{{1,15}})Mi"\)\) >= 0'
)


_READ: LruCache[Demand | None] = LruCache(2**20)
"""Texts of demands; a cluster has as many as there are sets of policies and drivers. Authors write the others."""


def parse_demand(text: str) -> Demand | None:
    """Return the demand whose text this is to the letter; None for any other CEL, which is not understood."""
    if not text.startswith(_BEGIN) or len(text) > LONGEST:
        return None
    found = _READ.get(text)
    if found is None and (found := _read(text)) is not None:
        _READ.keep(text, found, 4 * len(text) + 512)
    return found


def _read(text: str) -> Demand | None:
    found: Demand | None = None
    try:
        if (one := _ONE_OF.fullmatch(text)) is not None:
            driver, domain, values = (json.loads(one[group]) for group in (1, 2, 6))
            shape = {"outside": one[4] is not None, "spaces": one[5] is not None}
            found = OneOf(driver=driver, domain=domain, attribute=one[3], values=tuple(values), **shape)
        elif (least := _AT_LEAST.fullmatch(text)) is not None:
            driver, domain = (json.loads(least[group]) for group in (1, 2))
            found = AtLeast(driver=driver, domain=domain, capacity=least[3], mebibytes=int(least[4]))
    except ValueError:  # an escape that CEL has and JSON has not
        return None
    return found if found is not None and found.text == text else None


def implied(demand: Demand, given: Iterable[Demand]) -> bool:
    """Return whether every device that meets all that is given meets this demand."""
    alike = [one for one in given if one.subject == demand.subject]
    if isinstance(demand, AtLeast):
        return any(isinstance(one, AtLeast) and one.mebibytes >= demand.mebibytes for one in alike)
    lists = [one for one in alike if isinstance(one, OneOf)]
    outside = {value for one in lists if one.outside for value in one.values}
    inside = [set(one.values) for one in lists if not one.outside]
    left = set.intersection(*inside) - outside if inside else None
    if demand.outside:
        return outside.issuperset(demand.values) if left is None else left.isdisjoint(demand.values) or outside.issuperset(demand.values)
    return left is not None and left.issubset(demand.values)
