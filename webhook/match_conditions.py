"""The conditions under which the API server calls Berth: CEL, made from the catalog.

Together they say what ``policies.engine.evaluate`` judges, so nothing else is ever sent: with every replica gone and
failurePolicy Fail, all other pods are created as if Berth were not there.

What the API server makes of a condition decides its form. One that errors refuses the object (Fail) or skips the webhook
(Ignore), so none may: ``.?x``, ``[?x]`` and ``[?0]`` pass over what is absent, and what may be null (custom resources keep
nulls, and a pod without containers has ``containers: null``) is compared with null before it is walked. One expression may
cost 1,000,000 units (apiserver pkg/apis/cel/config.go) and regular expressions cost most, so names are looked up in a list,
and only those with the right beginning are matched. All that is used is in Kubernetes 1.30.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent

from policies.actor import FRACTIONS
from policies.catalog import Catalog
from policies.pod import MIRROR
from webhook.re2 import prefix, re2

WIDTH = 100
"""characters of a line of names"""

NOT_A_MIRROR = f'!object.?metadata.?annotations[?"{MIRROR}"].hasValue()'
"""The kubelet's own static pods: the API server only shows them."""
TOLERATIONS_CHANGED = "object.?spec.?tolerations.orValue(null) != oldObject.?spec.?tolerations.orValue(null)"
MADE_BY_NO_CONTROLLER = """\
[?object.?metadata.?ownerReferences].all(owners, owners == null ||
  !owners.exists(owner, owner.?controller.orValue(false) == true))"""
"""Warnings reach whoever made the request; a controller that makes ReplicaSets or a CronJob's Jobs reads none."""


def asks(catalog: Catalog, pod: str = "object") -> str:
    """Whether the pod or template ``pod`` (a CEL expression) names an accelerator, by ``policies.pod.asks``, or a misspelling of one.

    The API server writes every zero amount as ``"0"``; custom resources may hold the number. A misspelt name is one at any
    amount. Raises re2.PatternError.
    """
    test = " ||\n".join([*_misspelt(catalog), f"(\n{indent(_known(catalog), '  ')}\n) && amounts[name] != '0' && amounts[name] != 0"])
    return f"""\
[?{pod}.?spec.?initContainers, ?{pod}.?spec.?containers].exists(containers, containers != null &&
  containers.exists(container,
    [?container.?resources.?limits, ?container.?resources.?requests].exists(amounts, amounts != null &&
      amounts.exists(name,
{indent(test, " " * 8)}
      )
    )
  )
)"""


def _misspelt(catalog: Catalog) -> Iterator[str]:
    if catalog.misspellings:
        yield _among("name", catalog.misspellings)


def _known(catalog: Catalog) -> str:
    names = [known.name for known in catalog.resources if known.name is not None]
    tests = [_among("name", names)] if names else []
    for known in catalog.resources:
        if known.name is None:
            start = prefix(known.pattern.pattern)
            matches = f"name.matches({text(re2(known.pattern.pattern))})"
            tests.append(f"name.startsWith({text(start)}) && {matches}" if start else matches)
    return " ||\n".join(tests) or "false"


def claims(pod: str = "object") -> str:
    """Whether the pod or template has resource claims (DRA), or asks for a fraction of a GPU by annotation."""
    keys = ", ".join(map(text, FRACTIONS))
    return f"""\
{pod}.?spec.?resourceClaims[?0].hasValue() ||
[{keys}].exists(key, {pod}.?metadata.?annotations[?key].hasValue())"""


def judged(catalog: Catalog, pod: str = "object") -> str:
    """Whether the engine has anything to say on it: by name, claims or a fraction."""
    return f"{claims(pod)} ||\n{asks(catalog, pod)}"


def templates(catalog: Catalog) -> str:
    """Whether any pod template of a workload is judged, wherever a workload of the catalog has them."""
    paths = dict.fromkeys(path for workload in catalog.workloads for path in workload.templates)
    found = "\n+ ".join(_collected(list(paths))) or "[[]]"
    return f"""\
(
{indent(found, "  ")}
).exists(templates, templates.exists(template,
{indent(judged(catalog, "template"), "  ")}
))"""


def _collected(paths: Sequence[str]) -> Iterator[str]:
    """CEL lists of lists of templates: first those at plain paths, then the items of lists and the values of maps."""
    plain = [path for path in paths if "*" not in path]
    if plain:
        yield f"[{_optionals(plain)}]"
    lists: dict[str, list[str]] = {}
    maps: dict[str, list[str]] = {}
    for path in paths:
        for star, groups in (("[*].", lists), (".*.", maps)):
            before, found, after = path.partition(star)
            if found:
                groups.setdefault(after, []).append(before)
    for after, befores in lists.items():
        walked = f"items.map(item, item{_steps(after)}.orValue(null))"
        yield f"{_optionals(befores)}.filter(items, items != null).map(items, {walked})"
    for after, befores in maps.items():
        walked = f"values.map(key, values[key]{_steps(after)}.orValue(null))"
        yield f"{_optionals(befores)}.filter(values, values != null).map(values, {walked})"


def _optionals(paths: Iterable[str]) -> str:
    """A list of what stands at these paths of the object, without what is absent."""
    return _list([f"?object{_steps(path)}" for path in paths])


def _steps(path: str) -> str:
    """``spec.template`` as ``.?spec.?template``."""
    return "".join(f".?{step}" for step in path.split("."))


def _among(name: str, names: Iterable[str]) -> str:
    return f"{name} in {_list([text(one) for one in names])}"


def _list(items: Sequence[str]) -> str:
    """On one line where it fits, else as a block of lines."""
    line = f"[{', '.join(items)}]"
    if len(line) <= WIDTH:
        return line
    lines = [items[0]]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 3 > WIDTH:
            lines[-1] += ","
            lines.append(item)
        else:
            lines[-1] += f", {item}"
    return "[\n" + indent("\n".join(lines), "  ") + "\n]"


def text(value: str) -> str:
    """A CEL string: raw (``r'...'``) where backslashes would double, quoted with escapes where it must be."""
    if value.isprintable() and "'" not in value:
        return f"r'{value}'" if "\\" in value else f"'{value}'"
    escaped = "".join(c if c.isprintable() and c not in "'\\" else f"\\U{ord(c):08x}" for c in value)
    return f"'{escaped}'"
