"""Whether a set of nodes can be said in node labels on a platform, tried out form by form (``docs/laws.md``, "Placement")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from catalog import Platform
from catalog.platforms import Sharing
from tests.reference.nodes import Atlas, Node, holds

Raw = dict[str, Any]


def can_say(atlas: Atlas, platform: str, axis: str, nodes: Sequence[Node], inside: Sequence[Node]) -> list[set[Node]]:
    """What is selected by the form that says ``inside``; where there is none, the parts that can be said, largest first."""
    want = set(inside)
    if not inside or len(inside) == len(nodes):
        return [want]
    if axis == "capacity" and any(not n.further for n in want):
        nodes, want = [n for n in nodes if not n.further], {n for n in want if not n.further}
    options = []
    for form, claimed in _forms(atlas, platform, axis, nodes, want):
        selected = claimed or {n for n in nodes if all(_selects(atlas, n, e) for e in form)}
        if selected == want:
            return [want]
        if selected and selected <= want and selected not in options:
            options.append(selected)
    return sorted(options, key=len, reverse=True)


def _selects(atlas: Atlas, node: Node, expression: Raw) -> bool:
    """A node that may lack what the expression wants may still be matched: any of its values will do."""
    return any(holds(v, expression, atlas.known(expression["key"])) for v in node.labels.get(expression["key"], (None,)))


Form = tuple[list[Raw], set[Node] | None]
"""a form, and what it is meant to select where labels alone do not tell (a slice's own resource name does)"""


def _forms(atlas: Atlas, platform: str, axis: str, nodes: Sequence[Node], want: set[Node]) -> Iterator[Form]:
    entry = atlas.catalog.platforms[platform]
    if axis == "sharing":
        yield from _sharing_forms(atlas, platform, want)
        return
    later: list[Form] = []
    lists = entry.machine_keys if axis == "machine" else [(key,) for key in entry.capacity_keys]
    for keys in lists:
        yield from (([e for form in forms for e in form], None) for forms in product(*(_key_forms(key, nodes, want) for key in keys)))
        if axis == "machine" and len(keys) == 1:
            later += _without_types(entry, keys[0], nodes, want)
        if axis == "capacity":  # on-demand is said by absence where only spot is labelled
            yield [{"key": key, "operator": "DoesNotExist"} for key in keys], None
    yield from later


def _without_types(entry: Platform, key: str, nodes: Sequence[Node], want: set[Node]) -> Iterator[Form]:
    """What the wanted nodes carry, and none of the instance types that the others with it have, where that is exact."""
    mine = {v for n in want for v in n.labels.get(key, (None,))}
    for of_type in (name for name, attribute in entry.labels.items() if attribute == "type" and name != key):
        others = {v for n in nodes if n not in want for v in n.labels.get(of_type, (None,)) if mine & set(n.labels.get(key, (None,)))}
        wanted = {v for n in want for v in n.labels.get(of_type, (None,))}
        if not {None, "*", "?"} & mine and not {None, "*", "?"} & others and not others & wanted:
            yield (
                [
                    {"key": key, "operator": "In", "values": sorted(v for v in mine if v)},
                    {"key": of_type, "operator": "NotIn", "values": sorted(v for v in others if v)},
                ],
                set(want),
            )


def _key_forms(key: str, nodes: Sequence[Node], want: set[Node]) -> list[list[Raw]]:
    """In and NotIn over what the wanted nodes carry, and over what they alone carry; the key must be there."""
    mine = {v for n in want for v in n.labels.get(key, (None,))}
    others = {v for n in nodes if n not in want for v in n.labels.get(key, (None,))}
    forms = []
    for values in (mine, mine - others):
        named = sorted(v for v in values if v not in (None, "*", "?"))
        if named:
            forms.append([{"key": key, "operator": "In", "values": named}])
    for values in (others, others - mine):
        named = sorted(v for v in values if v not in (None, "*", "?"))
        forms.append([{"key": key, "operator": "Exists"}, {"key": key, "operator": "NotIn", "values": named}])
    return forms


def _sharing_forms(atlas: Atlas, platform: str, want: set[Node]) -> Iterator[Form]:
    """Whole GPUs by what keeps the others off; other kinds one at a time, where their labels may be wanted."""
    entry = atlas.catalog.platforms[platform]
    scheme = atlas.catalog.schemes[entry.sharing]
    kinds: set[Sharing] = {n.sharing for n in want}
    if "Exclusive" in kinds:
        yield [], want
    elif not entry.creates_nodes or scheme.slice_key is not None:
        for kind in sorted(kinds & set(scheme.only)):
            yield [], {n for n in want if n.sharing == kind}
