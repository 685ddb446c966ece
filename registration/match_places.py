"""Build CEL for the places where a workload describes its pods: templates, and for kinds without these, a
catalog's ``Place``.

From what a place reads, the CEL assembles a template that has what the condition on templates tests:
containers with their resources, resource claims, and annotations. An amount in a field of its own (``gpu:
{quantity: 1}``) is put under the first resource of the catalog, and so is a patch that is a text and may hold
one: Berth may be called for more than it then judges. Two things are left out: a patch that is a map, and
what a pod has of an object that its own names.

An expression is about objects of all these kinds, so it assumes of nothing on the way that it exists, or has
a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from policies.catalog import Catalog, Workload
from policies.catalog.workload import Place, joined


def templates(workloads: Iterable[Workload]) -> list[str]:
    """Return a list of lists of templates for each path at which a workload has one or some."""
    paths = dict.fromkeys(path for workload in workloads for path in workload.templates)
    return [_filled(each(path, "item")) for path in paths]


def described(catalog: Catalog, workloads: Iterable[Workload], *, with_claims: bool = True) -> list[str]:
    """Return a list of lists of templates for each spot at which a workload describes its pods in other
    fields."""
    known = next(iter(catalog.whole.values()))
    found = (each(joined(place.root, at), _template(place, known, with_claims)) for w in workloads for place in w.places for at in place.at)
    return [_filled(one) for one in dict.fromkeys(found)]


_WIDTH = 120
"""The most characters of a line."""
_BREAK = re.compile(r"(?<=, )|(?<= \+ )|(?<= \? )|(?= : )|(?=\.map\()|(?=\.filter\()")
"""Matches where a line may end: no text of the catalog holds any of these."""


def _filled(expression: str) -> str:
    """Return the same expression on as many lines as it takes."""
    lines = [""]
    for piece in _BREAK.split(expression):
        if len(lines[-1]) + len(piece) > _WIDTH:
            lines.append("  ")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def each(path: str, leaf: str) -> str:
    """Return a list of lists of the value of ``leaf``, CEL about ``item``, for each value at ``path`` of
    the object; two stars at most."""
    *stars, last = _segments(path)
    if len(stars) < 2:
        return f"[{_leaves('object', stars, last, leaf)}]"
    return f"{_items('object', stars[0])}.map(outer, {_leaves('outer', stars[1:], last, leaf)})"


def _segments(path: str) -> list[str]:
    """Split ``a.b[*].c.*.d`` into ``a.b[*]``, ``c*``, ``d``: a segment that ends in a star has several
    values."""
    found, here = [], ""
    for step in path.replace("[*]", ".[*]").split("."):
        if step in ("[*]", "*"):
            found.append(here + step)
            here = ""
        else:
            here = f"{here}.{step}" if here else step
    return [*found, here]


def _leaves(start: str, stars: Sequence[str], last: str, leaf: str) -> str:
    """Return a list of leaves, from the variable ``start`` over one star or none."""
    if not stars:
        found = f"[?{start}{_steps(last)}]"
    else:
        found = _items(start, stars[0])
        if last:
            found = f"{found}.map(inner, inner{_steps(last)}.orValue(null))"
    return f"{found}.filter(item, item != null).map(item, {leaf})" if leaf != "item" else f"{found}.filter(item, item != null)"


def _items(start: str, star: str) -> str:
    """Return the items of a list, or the values of a map; none if it is absent, null, or of another type
    in another kind."""
    if star.endswith("[*]"):
        return _listed(start, star.removesuffix("[*]"))
    path = star.removesuffix("*")
    there = f"{start}.{path}" if path else start
    return f"(type({start}{_steps(path)}.orValue(null)) == map ? {there} : {{}}).map(key, {there}[key])"


def _listed(start: str, path: str) -> str:
    """Return the items of a list, or nothing if there is none."""
    return f"(type({start}{_steps(path)}.orValue(null)) == list ? {start}.{path} : [])" if path else start


def _steps(path: str) -> str:
    """Return a path as optional CEL fields: ``.?spec.?template`` for ``spec.template``."""
    return "".join(f".?{step}" for step in path.split(".")) if path else ""


# --- places -------------------------------------------------------------------------------------------------


def _template(place: Place, known: str, with_claims: bool) -> str:
    """Return a pod template of what a place reads of ``item``."""
    claims = place.fields.get("resourceClaims") or tuple(joined(path, "resourceClaims") for path in place.spec)
    spec = [f"'containers': dyn({_containers(place, known)})"]
    init = [*_own_lists(place, "initContainers"), *_lists(place, place.init_containers)]
    spec += [f"'initContainers': dyn({' + '.join(init)})"] if init else []
    spec += [f"?'resourceClaims': {_optional(place, claims[0])}"] if claims and with_claims else []
    metadata = f"?'annotations': {_optional(place, place.annotations[0])}" if place.annotations else ""
    return f"{{'metadata': dyn({{{metadata}}}), 'spec': dyn({{{', '.join(spec)}}})}}"


def _containers(place: Place, known: str) -> str:
    found = [*_own_lists(place, "containers"), *_lists(place, place.containers)]
    found += [f"[dyn({{?'resources': {_optional(place, named.rpartition('=')[2])}}})]" for named in place.resources]
    for one in place.devices:
        if one.amounts:
            found.append(f"[dyn({{'resources': dyn({{?'limits': {_optional(place, one.amounts)}}})}})]")
        else:
            found.append(f"[?{_optional(place, one.amount)}].filter(n, n != null).map(n, {_asking(known, 'n')})")
    for patch in place.patches:
        if patch.at in (".", "/"):
            path = f"/{patch.path}" if patch.at == "/" else patch.path
            text = f"[?{_optional(place, path)}].filter(t, type(t) == string && t.contains('/'))"
            found.append(f"{text}.map(t, {_asking(known, quoted('1'))})")
    return " + ".join(found) or "[]"


def _asking(known: str, amount: str) -> str:
    return f"dyn({{'resources': {{'limits': {{{quoted(known)}: dyn({amount})}}}}}})"


def _own_lists(place: Place, group: str) -> list[str]:
    """Return the lists of containers of whole specs."""
    return [_list(place, joined(path, group)) for path in place.spec]


def _lists(place: Place, named: Sequence[str]) -> list[str]:
    """Return single containers as one list, and the lists; all of them again if their resources have
    another field name."""
    paths = [one.rpartition("=")[2] for one in named]
    single = ", ".join(f"?{_optional(place, path)}" for path in paths if not path.endswith("[*]"))
    found = [f"[{single}]"] if single else []
    found += [_list(place, path.removesuffix("[*]")) for path in paths if path.endswith("[*]")]
    if place.resources_as != "resources":
        found += [f"{one}.map(c, dyn({{?'resources': c.?{place.resources_as}}}))" for one in found]
    return found


def _start(place: Place, path: str) -> tuple[str, str]:
    """Return the variable from which a path leads, and the path."""
    return ("object", joined(place.root, path[1:])) if path.startswith("/") else ("item", joined("", path))


def _list(place: Place, path: str) -> str:
    return _listed(*_start(place, path))


def _optional(place: Place, path: str) -> str:
    start, steps = _start(place, path)
    return f"{start}{_steps(steps)}"


def quoted(text: str) -> str:
    """Return a plain text of the catalog as a CEL string."""
    return f"'{text}'"
