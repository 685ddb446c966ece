"""Build the conditions under which the API server calls Berth: CEL, made from the catalog.

Together they match what ``policies.engine.evaluate`` checks, and a little more. So all other pods are created even if every replica is gone
and failurePolicy is Fail. All functions that are used are in Kubernetes 1.30.

A condition with an error denies the object (Fail) or skips the webhook (Ignore), so no object may cause an error:

- ``.?x``, ``[?x]`` and ``[?0]`` skip absent fields, and fields that may be null are compared with null first. Only the kinds of
  Kubernetes itself are read, since the API server knows their types; for a custom resource only the fact that it changed counts.
- One expression may cost 1,000,000 units (apiserver pkg/apis/cel/config.go). Names are looked up in a list or compared with prefixes, and
  a pod with more than ``MOST_CONTAINERS`` or ``MOST_NAMES`` is sent to Berth unread. So nothing that the API server stores costs more than
  500,000 (tests/registration/test_condition_costs.py searches for the most expensive objects).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent

from catalog import Catalog, Workload
from catalog.parse.kinds import paths_of
from kube.pod import MIRROR
from kube.review import NODES
from policies.pods.fractions import FRACTION_DEVICES, FRACTION_ENDS, FRACTIONS
from policies.pods.queue_systems import KAI_SKIPS, KEPT_ANNOTATIONS, KEPT_LABELS, SYSTEMS

WIDTH = 100
"""The most characters of a line of names."""
MOST_CONTAINERS = 200
"""The most containers of a list that are walked; the largest pods observed have thirty."""
MOST_ANNOTATIONS = 200
"""The most annotations that are walked."""
MOST_NAMES = 16
"""The most resource names of a container's limits, or of its requests, that are walked."""

NOT_A_MIRROR = f"""\
!object.?metadata.?annotations[?"{MIRROR}"].hasValue() ||
!("{NODES}" in request.?userInfo.?groups.orValue([]))"""
"""False for the kubelet's own static pods, which the API server only mirrors. Anybody can write the
annotation, but only a node is in that group."""
TOLERATIONS_CHANGED = "object.?spec.?tolerations.orValue(null) != oldObject.?spec.?tolerations.orValue(null)"
RESIZED = 'request.?subResource.orValue("") == "resize"'
"""True for the resize subresource, through which alone amounts of cpu and memory of a running pod are changed (KEP-1287)."""
SENT_BACK = """\
oldObject.?metadata.?annotations[?"berth.dev/applied"].hasValue() &&
object.?spec.orValue(null) != oldObject.?spec.orValue(null)"""
OWNED_ANEW = "object.?metadata.?ownerReferences.orValue(null) != oldObject.?metadata.?ownerReferences.orValue(null)"
MADE_BY_NO_CONTROLLER = """\
[?object.?metadata.?ownerReferences].all(owners, owners == null ||
  !owners.exists(owner, owner.?controller.orValue(false) == true))"""
"""True unless a controller makes the object: warnings reach the client of the request, and a controller
that makes ReplicaSets or a CronJob's Jobs reads none."""


def in_turn(*tests: str) -> str:
    """Return one expression that is true if all tests hold; the first that does not hold is the last that is evaluated.

    The API server evaluates every condition of a webhook, also after one was false (apiserver
    admission/plugin/webhook/matchconditions).
    """
    return " &&\n".join(f"({test})" for test in tests)


def names_accelerator(catalog: Catalog, pod: str = "object") -> str:
    """Return the test that the pod or template ``pod`` (a CEL expression) names an accelerator or a
    misspelling of one, or is too large to be walked.

    It holds wherever ``kube.pod.is_requested`` does. The API server writes every zero amount as ``"0"``. A misspelt
    name counts at any amount. Raises PatternError.
    """
    test = " ||\n".join([*_misspelt(catalog), f"(\n{indent(_known(catalog), '  ')}\n) && amounts[name] != '0'"])
    return f"""\
[?{pod}.?spec.?initContainers, ?{pod}.?spec.?containers].exists(containers, containers != null && (
  containers.size() > {MOST_CONTAINERS} ||
  containers.exists(container,
    [?container.?resources.?limits, ?container.?resources.?requests].exists(amounts, amounts != null && (
      amounts.size() > {MOST_NAMES} ||
      amounts.exists(name,
{indent(test, " " * 8)}
      )
    ))
  )
))"""


def _misspelt(catalog: Catalog) -> Iterator[str]:
    if catalog.misspellings:
        yield among("name", catalog.misspellings)


def _known(catalog: Catalog) -> str:
    """Return the test that ``name`` is known, or begins as a pattern does; each prefix costs 3 to 5 units, so a name is only compared with
    those of its first letter."""
    names = [known.name for known in catalog.resources if known.name is not None]
    begun = dict.fromkeys(start for known in catalog.resources if known.name is None for start in prefixes(known.pattern.pattern))
    tests = [among("name", names)] if names else []
    shortest = [start for start in begun if not any(start.startswith(other) and start != other for other in begun)]
    for letter in dict.fromkeys(start[0] for start in shortest):
        begins = " ||\n  ".join(f"name.startsWith({quote_cel(start)})" for start in shortest if start[0] == letter)
        tests.append(f"name.charAt(0) == {quote_cel(letter)} && (\n  {begins}\n)")
    return " ||\n".join(tests) or "false"


class PatternError(ValueError):
    """A pattern of resource names without a known prefix; the message names it."""


_WHOLE = re.compile(r"\^\(\?:(.*)\)\$", re.DOTALL)
"""Matches the anchors that ``ResourcePattern`` puts around the catalog's pattern."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_LITERALS = re.compile(r"(?:[A-Za-z0-9/_'-]|\\\W)*(?![*+?{])")


def prefixes(pattern: str) -> list[str]:
    """Return texts such that every name that matches begins with one of them. Raises PatternError if there are none."""
    whole = _WHOLE.fullmatch(pattern)
    alternatives, depth = [""], 0
    for token in _TOKEN.findall(whole[1] if whole else pattern):
        depth += (token == "(") - (token == ")")
        alternatives = [*alternatives, ""] if token == "|" and depth == 0 else [*alternatives[:-1], alternatives[-1] + token]
    found = [_LITERALS.match(alternative) for alternative in alternatives]
    if not all(match and match[0] for match in found):
        raise PatternError(
            f"resources: the pattern {whole[1] if whole else pattern} may begin with anything; "
            r"begin it with a domain, as in example\.com/(?:a|b)"
        )
    return [re.sub(r"\\(\W)", r"\1", match[0]) for match in found if match]


_ENDS = "(\n    " + " ||\n    ".join(f"key.endsWith('{end}')" for end in FRACTION_ENDS) + "\n  )"


def fractions(pod: str = "object") -> str:
    """Return the test that the pod or template asks for a fraction of a GPU by annotation."""
    return f"""\
[?{pod}.?metadata.?annotations].exists(annotations, annotations != null && (
  annotations.size() > {MOST_ANNOTATIONS} ||
  annotations.exists(key, {among("key", FRACTIONS)} || {_ENDS})
))"""


def claims(pod: str = "object") -> str:
    """Return the test that the pod or template has resource claims (DRA)."""
    return f"{pod}.?spec.?resourceClaims[?0].hasValue()"


def is_evaluated(catalog: Catalog, pod: str = "object", *, with_claims: bool = True) -> str:
    """Return the test that the engine checks the pod: because of a fraction, a claim (``with_claims``) or a resource name."""
    return " ||\n".join([*([claims(pod)] if with_claims else []), fractions(pod), names_accelerator(catalog, pod)])


def made_claims(catalog: Catalog) -> str:
    """Return the test that a claim or template is new, or has another spec, and asks for a class that may be of accelerators.

    That is any class but those that are named like other drivers.
    """
    others = indent(_list([quote_cel(driver) for driver in sorted(catalog.other_drivers)]), " " * 8).lstrip()
    return f"""\
(oldObject == null || object.?spec.orValue(null) != oldObject.?spec.orValue(null)) &&
[?object.?spec.?devices.?requests, ?object.?spec.?spec.?devices.?requests].exists(requests, requests != null &&
  requests.exists(request,
    [dyn([request]), dyn([?request.?exactly]), ?request.?firstAvailable].exists(choices, choices != null &&
      choices.exists(choice, [?choice.?deviceClassName].exists(name, name != "" &&
        !(name in {others})))
    )
  )
)"""


def updated(catalog: Catalog) -> str:
    """Return the test that an update changes what is checked: tolerations, owners, a mark of the catalog's
    ``protections``, what keeps a pod in its queue, a part of a GPU, amounts."""
    tests = [TOLERATIONS_CHANGED, OWNED_ANEW]
    for where, of_queues in (("annotations", (*KEPT_ANNOTATIONS, *FRACTIONS, FRACTION_DEVICES)), ("labels", KEPT_LABELS)):
        if keys := [quote_cel(key) for key in (*(p.key for p in catalog.protections if p.where == where), *of_queues)]:
            tests.append(_any_changed(where, keys))
    ends = f"{_ENDS} && annotations[key] != oldObject.?metadata.?annotations[?key].orValue(null)"
    tests.append(f"""\
[?object.?metadata.?annotations].exists(annotations, annotations != null && (
  annotations.size() > {MOST_ANNOTATIONS} ||
  annotations.exists(key, {ends})
))""")
    return " ||\n".join([*tests, f"{fractions('oldObject')} && !{fractions()}", RESIZED])


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


def moved() -> str:
    """Return the test that what tells the owner or the queue of a workload changed."""
    keys = {where: [quote_cel(system.key) for system in SYSTEMS if system.where == where] for where in ("labels", "annotations")}
    keys["annotations"] += [quote_cel(str(KAI_SKIPS[2]))]
    return " ||\n".join([OWNED_ANEW, *(_any_changed(where, listed) for where, listed in keys.items())])


def asked_in(catalog: Catalog, workloads: Iterable[Workload], *, with_claims: bool = True) -> str:
    """Return the test that the engine checks a pod template of an object of these kinds, which have templates at plain paths."""
    paths = dict.fromkeys(path for workload in workloads for path in workload.templates)
    found = ", ".join("?object" + "".join(f".?{step}" for step in path.split(".")) for path in paths)
    return f"""\
[{found}].exists(template, template != null && (
{indent(is_evaluated(catalog, "template", with_claims=with_claims), "  ")}
))"""


def among(name: str, names: Iterable[str]) -> str:
    """Return the test that ``name`` is one of the names."""
    return f"{name} in {_list([quote_cel(one) for one in names])}"


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


def quote_cel(value: str) -> str:
    """Return a CEL string: raw (``r'...'``) if backslashes would double, quoted with escapes where it must be."""
    if value.isprintable() and "'" not in value:
        return f"r'{value}'" if "\\" in value else f"'{value}'"
    escaped = "".join(c if c.isprintable() and c not in "'\\" else f"\\U{ord(c):08x}" for c in value)
    return f"'{escaped}'"
