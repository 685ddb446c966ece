"""Build the conditions under which the API server calls Berth: CEL, made from the catalog.

Together they match what ``policies.engine.evaluate`` judges, so nothing else is ever sent: with every replica
gone and failurePolicy Fail, all other pods are created as if Berth were not there.

The API server's treatment of a condition decides its form. One that errors refuses the object (Fail) or skips
the webhook (Ignore), so none may: ``.?x``, ``[?x]`` and ``[?0]`` pass over what is absent, and what may be
null (custom resources keep nulls, and a pod without containers has ``containers: null``) is compared with
null before it is walked. All functions that are used are in Kubernetes 1.30.

One expression may cost 1,000,000 units (apiserver pkg/apis/cel/config.go); a pod over that is refused,
whether it has accelerators or not. Regular expressions cost most, so names are looked up in a list, and only
those with the right beginning are matched. Measured with the shipped catalog: a container costs 37, a limit
or a request 8, or 14 if its name begins with a letter of a pattern. With 12 resources by limit and by request
4,350 containers pass, or 2,680 with such names (with 5: 8,500, or 5,650); they come to 1.5 MiB, which is what
etcd takes, at 2,000 to 2,300 (5: 4,300 to 4,900). Names of MIG profiles that do not exist are matched: 280
pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent

from policies.catalog import Catalog, Workload
from policies.catalog.parse.kinds import paths_of
from policies.pods.permissions import FRACTION_DEVICES, FRACTIONS
from policies.pods.queue_systems import KEPT_ANNOTATIONS, KEPT_LABELS, SYSTEMS
from policies.pods.view import MIRROR
from registration.re2 import prefix, re2

NODES = "system:nodes"
"""The group of kubelets (k8s.io/apiserver pkg/authentication/user NodesGroup)."""
WIDTH = 100
"""The most characters of a line of names."""

NOT_A_MIRROR = f"""\
!object.?metadata.?annotations[?"{MIRROR}"].hasValue() ||
!("{NODES}" in request.?userInfo.?groups.orValue([]))"""
"""False for the kubelet's own static pods, which the API server only mirrors. Anybody can write the
annotation, but only a node is in that group."""
TOLERATIONS_CHANGED = "object.?spec.?tolerations.orValue(null) != oldObject.?spec.?tolerations.orValue(null)"
RESIZED = 'request.?subResource.orValue("") == "resize"'
"""True for the resize subresource, through which alone amounts of cpu and memory of a running pod are
changed (KEP-1287)."""
MADE_BY_NO_CONTROLLER = """\
[?object.?metadata.?ownerReferences].all(owners, owners == null ||
  !owners.exists(owner, owner.?controller.orValue(false) == true))"""
"""True unless a controller makes the object: warnings reach the client of the request, and a controller
that makes ReplicaSets or a CronJob's Jobs reads none."""


def in_turn(*tests: str) -> str:
    """Return one expression that is true if all tests hold; the first that does not hold is the last that is
    evaluated.

    The API server evaluates every condition of a webhook, also after one was false (apiserver
    admission/plugin/webhook/matchconditions).
    """
    return " &&\n".join(f"({test})" for test in tests)


def either(*tests: str) -> str:
    """Return one expression that is true if any test holds; the first that holds is the last that is
    evaluated."""
    return " ||\n".join(f"({test})" for test in tests)


def asks(catalog: Catalog, pod: str = "object") -> str:
    """Return the test that the pod or template ``pod`` (a CEL expression) names an accelerator or a
    misspelling of one.

    It agrees with ``policies.pods.view.asks``. The API server writes every zero amount as ``"0"``; custom
    resources may hold the number. A misspelt name counts at any amount. Raises re2.PatternError.
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
    return " ||\n".join([*tests, *_patterns(catalog)]) or "false"


def _patterns(catalog: Catalog) -> Iterator[str]:
    """Yield tests of ``name``, the cheapest first.

    Each look at its first letter costs 2 units, each beginning 3 to 5, a regular expression 30 and more. If
    the beginning of a pattern cannot be determined, all other names are matched with it.
    """
    begun: dict[str, list[str]] = {}
    for known in catalog.resources:
        if known.name is None:
            matches = f"name.matches({text(re2(known.pattern.pattern))})"
            begun.setdefault(prefix(known.pattern.pattern), []).append(matches)
    anywhere = begun.pop("", [])
    if begun:
        letters: dict[str, list[str]] = {}
        for start, tested in begun.items():
            letters.setdefault(start[0], []).append(f"name.startsWith({text(start)}) && {_any(tested)}")
        branches = [f"name.charAt(0) == {text(letter)} ?\n{indent(_any(own), '  ')} :" for letter, own in letters.items()]
        lines = "\n".join([*branches, "false"])
        yield f"name.charAt(0) in {_list([text(letter) for letter in letters])} && (\n{indent(lines, '  ')}\n)"
    yield from anywhere


def _any(tests: Sequence[str]) -> str:
    return tests[0] if len(tests) == 1 else "(\n" + indent(" ||\n".join(tests), "  ") + "\n)"


def fractions(pod: str = "object") -> str:
    """Return the test that the pod or template asks for a fraction of a GPU by annotation."""
    keys = ", ".join(map(text, FRACTIONS))
    return f"[{keys}].exists(key, {pod}.?metadata.?annotations[?key].hasValue())"


def claims(pod: str = "object") -> str:
    """Return the test that the pod or template has resource claims (DRA), or asks for a fraction."""
    return f"{pod}.?spec.?resourceClaims[?0].hasValue() ||\n{fractions(pod)}"


def judged(catalog: Catalog, pod: str = "object", *, with_claims: bool = True) -> str:
    """Return the test that the engine judges the pod: by resource name, a fraction or, unless they are
    left out, claims."""
    return f"{claims(pod) if with_claims else fractions(pod)} ||\n{asks(catalog, pod)}"


def made_claims(catalog: Catalog) -> str:
    """Return the test that a claim or template asks for a class that may be of accelerators.

    That is any class but those that are named like other drivers.
    """
    others = indent(_list([text(driver) for driver in sorted(catalog.other_drivers)]), " " * 8).lstrip()
    return f"""\
[?object.?spec.?devices.?requests, ?object.?spec.?spec.?devices.?requests].exists(requests, requests != null &&
  requests.exists(request,
    [dyn([request]), dyn([?request.?exactly]), ?request.?firstAvailable].exists(choices, choices != null &&
      choices.exists(choice, [?choice.?deviceClassName].exists(name, name != "" &&
        !(name in {others})))
    )
  )
)"""


def updated(catalog: Catalog) -> str:
    """Return the test that an update changes what is judged: tolerations, a mark of the catalog's
    ``protections``, what keeps a pod in its queue, a part of a GPU, amounts."""
    tests = [TOLERATIONS_CHANGED]
    for where, of_queues in (("annotations", (*KEPT_ANNOTATIONS, *FRACTIONS, FRACTION_DEVICES)), ("labels", KEPT_LABELS)):
        if keys := [text(key) for key in (*(p.key for p in catalog.protections if p.where == where), *of_queues)]:
            tests.append(_any_changed(where, keys))
    return " ||\n".join([*tests, RESIZED])


def _any_changed(where: str, keys: Sequence[str]) -> str:
    """Return the test that one of these labels or annotations is another one than before."""
    now, before = (f"{one}.?metadata.?{where}[?key].orValue(null)" for one in ("object", "oldObject"))
    return f"{_list(keys)}.exists(key,\n  {now} !=\n  {before})"


def changed(workloads: Iterable[Workload]) -> str:
    """Return the test that a workload is new, or that a field that describes its pods (``spec``) changed.

    kubectl annotate and label, a controller's own annotations and a status in the same object change nothing
    there.
    """
    paths = (
        path for workload in workloads for path in (*workload.templates, *(path for place in workload.places for path in paths_of(place)))
    )
    roots = dict.fromkeys(path.partition(".")[0].removesuffix("[*]") for path in paths)
    tests = [f"object.?{root}.orValue(null) != oldObject.?{root}.orValue(null)" for root in roots if root != "metadata"]
    return " ||\n".join(["oldObject == null", *tests])


def requeued(workloads: Iterable[Workload]) -> str:
    """Return the test that a workload is new, or that what tells its pods or its queue changed."""
    keys = {where: [text(system.key) for system in SYSTEMS if system.where == where] for where in ("labels", "annotations")}
    return " ||\n".join([changed(workloads), *(_any_changed(where, listed) for where, listed in keys.items())])


def asked_in(catalog: Catalog, found: Sequence[str], *, with_claims: bool = True) -> str:
    """Return the test that any pod template in ``found``, CEL lists of lists of them, is judged."""
    return f"""\
(
{indent(chr(10).join(["[[]]", *(f"+ {one}" for one in found)]), "  ")}
).exists(templates, templates.exists(template,
{indent(judged(catalog, "template", with_claims=with_claims), "  ")}
))"""


def _among(name: str, names: Iterable[str]) -> str:
    return f"{name} in {_list([text(one) for one in names])}"


def _list(items: Sequence[str]) -> str:
    """Return the items on one line if they fit, else as a block of lines."""
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
    """Return a CEL string: raw (``r'...'``) if backslashes would double, quoted with escapes where it must
    be."""
    if value.isprintable() and "'" not in value:
        return f"r'{value}'" if "\\" in value else f"'{value}'"
    escaped = "".join(c if c.isprintable() and c not in "'\\" else f"\\U{ord(c):08x}" for c in value)
    return f"'{escaped}'"
