"""Build the backstop: a ValidatingAdmissionPolicy with which the API server itself limits the count, the grace period and the tolerations
of GPU pods, even while no replica of Berth answers.

It denies nothing that Berth admits under a policy with the same numbers. So it counts only what is certain: whole devices in the limits of
containers and sidecars together, and of each init container. Slices, DRA names and misspellings are left to Berth.

An expression with an error denies the pod, so no pod may cause an error. Lists are read up to ``MOST_CONTAINERS``, ``MOST_NAMES`` and
``MOST_TOLERATIONS``: no expression then costs the 1,000,000 units that it may. One amount counts for at most ``MOST_DEVICES``.
All functions that are used are in Kubernetes 1.30.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from catalog import Catalog
from registration.configurations import API_VERSION, NAMESPACE_NAME
from registration.entries import ALWAYS
from registration.match_conditions import NOT_A_MIRROR, TOLERATIONS_CHANGED, among, prefixes, quote_cel

Manifest = dict[str, Any]
NAME = "berth-backstop"
MOST_CONTAINERS = 1000
"""The most containers and init containers of a pod that are read."""
MOST_NAMES = 2000
"""The most resource names in the limits of all of them that are read."""
MOST_TOLERATIONS = 500
"""The most tolerations that are read."""
MOST_DEVICES = 1_000_000_000
"""What an amount counts for at most, so that sums stay integers."""
WHOLE = ("gpu", "shared", "passthrough", "other")
"""Kinds of resources whose units Berth counts as devices."""
HEAD = f"""\
# Off by default. To enable: kubectl apply -f deploy/backstop.yaml (with Helm: guards.backstop). To disable: delete this file's objects.
# Needs Kubernetes 1.30; the API server evaluates it without Berth. Generated from the catalog by `make generate`.
#
# The policy denies new GPU pods that request too many devices, have too long a grace period or tolerate a forbidden taint, and updates
# that add such a toleration. Set the first three variables; 0 or [] disables a check. They apply to every namespace:
# set the highest numbers that a ClusterGPUPolicy allows in any namespace, and only taints that no namespace may tolerate, such as
# [{{'key': 'team', 'value': 'web'}}]. Add the namespaces of your GPU operators to the binding.
#
# It counts whole devices in limits: those of containers and sidecars together, and those of each init container. It does not check MIG
# slices and partitions, resource claims, fractional GPUs by annotation, a probe's own grace period, Gt and Lt tolerations of a taint with a
# value, names that are not in the catalog, and pods with more than {MOST_CONTAINERS:,} containers, {MOST_NAMES:,} names in limits or
# {MOST_TOLERATIONS} tolerations.
---
"""

_TOLERATED = """\
(variables.tolerations.size() > {most} ? [] : variables.tolerations).filter(toleration,
  variables.forbiddenTolerations.exists(taint,
    (toleration.?key.orValue('') == '' || toleration.?key.orValue('') == taint.key) &&
    (!has(taint.effect) || toleration.?effect.orValue('') == '' || toleration.?effect.orValue('') == taint.effect) &&
    (!has(taint.value) || toleration.?operator.orValue('') == 'Exists' ||
      toleration.?operator.orValue('') in ['', 'Equal'] && toleration.?value.orValue('') == taint.value)
  ) && !({identity} in variables.tolerationsBefore)
)"""
_IDENTITY = """\
[toleration.?key.orValue(''), toleration.?operator.orValue('Equal'), toleration.?value.orValue(''), toleration.?effect.orValue('')]"""


def manifests(catalog: Catalog) -> tuple[Manifest, Manifest]:
    """Return the policy and its binding. Raises PatternError."""
    variables = {
        "gpusPerPod": "8",
        "gracePeriodSeconds": "3600",
        "forbiddenTolerations": "[]",
        "containers": "object.?spec.?containers.orValue([])",
        "initContainers": "object.?spec.?initContainers.orValue([])",
        "isRead": f"variables.containers.size() + variables.initContainers.size() <= {MOST_CONTAINERS} &&\n"
        "(variables.containers + variables.initContainers).map(container, container.?resources.?limits.orValue({}).size()).sum()"
        f" <= {MOST_NAMES}",
        # limits of what runs together, and of init containers, each of which runs alone but for sidecars
        "together": "!variables.isRead ? [] :\n(variables.containers +"
        " variables.initContainers.filter(container, container.?restartPolicy.orValue('') == 'Always'))\n"
        "  .map(container, container.?resources.?limits.orValue({}))",
        "alone": "!variables.isRead ? [] : variables.initContainers.map(container, container.?resources.?limits.orValue({}))",
        "namesAccelerator": "(variables.together + variables.alone).exists(limits, limits.exists(name,\n"
        f"  ({_names(catalog, {known.kind for known in catalog.resources} - {'dra'})}) && limits[name] != '0'\n))",
        "counts": "[variables.together, variables.alone].map(all, all.map(limits, limits.map(name,\n"
        f"  ({_names(catalog, WHOLE)}) && isQuantity(limits[name]),\n"
        f"  quantity(limits[name]).isGreaterThan(quantity('{MOST_DEVICES}')) ? {MOST_DEVICES} :\n"
        "  quantity(limits[name]).isInteger() ? quantity(limits[name]).asInteger() : 0\n).sum()))",
        "gpus": "([variables.counts[0].sum()] + variables.counts[1]).max()",
        "grace": "object.?spec.?terminationGracePeriodSeconds.orValue(30)",
        "tolerations": "object.?spec.?tolerations.orValue([])",
        "tolerationsBefore": f"oldObject == null ? [] : oldObject.?spec.?tolerations.orValue([]).map(toleration,\n  {_IDENTITY})",
        "tolerated": _TOLERATED.format(most=MOST_TOLERATIONS, identity=_IDENTITY),
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}]
        },
        "matchConditions": [
            {"name": "not-a-mirror-pod", "expression": NOT_A_MIRROR},
            # of what is checked an update can add tolerations alone
            {"name": "new-or-with-other-tolerations", "expression": f"oldObject == null || {TOLERATIONS_CHANGED}"},
        ],
        "variables": [{"name": name, "expression": expression} for name, expression in variables.items()],
        "validations": [
            _validation(
                "oldObject != null || variables.gpusPerPod == 0 || variables.gpus <= variables.gpusPerPod",
                "'the pod requests ' + string(variables.gpus) + ' GPUs, more than the ' + string(variables.gpusPerPod) +\n"
                "' allowed here; request at most ' + string(variables.gpusPerPod) + ', or split the work over more pods'",
            ),
            # 30 is what the API server writes where the author wrote nothing
            _validation(
                "oldObject != null || variables.gracePeriodSeconds == 0 || variables.grace <= variables.gracePeriodSeconds ||\n"
                "variables.grace == 30 || !variables.namesAccelerator",
                "'spec.terminationGracePeriodSeconds is ' + string(variables.grace) + ', above the maximum of ' +\n"
                "string(variables.gracePeriodSeconds) + ' s here; set it to at most ' + string(variables.gracePeriodSeconds)",
            ),
            _validation(
                "variables.forbiddenTolerations.size() == 0 || !variables.namesAccelerator || variables.tolerated.size() == 0",
                "'spec.tolerations has an entry ' + (variables.tolerated[0].?key.hasValue() ? 'with key ' + variables.tolerated[0].key :\n"
                "'without a key, which tolerates every taint') + ': it tolerates a taint that is forbidden here; remove it'",
            ),
        ],
    }
    outside = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": [*ALWAYS, "berth-system"]}
    binding = {
        "policyName": NAME,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchExpressions": [outside]}},
    }
    return _object("ValidatingAdmissionPolicy", policy), _object("ValidatingAdmissionPolicyBinding", binding)


def _object(kind: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": NAME}, "spec": spec}


def _validation(expression: str, message: str) -> Manifest:
    return {"expression": expression, "reason": "Forbidden", "messageExpression": message}


def _names(catalog: Catalog, kinds: Collection[str]) -> str:
    """Return the test that ``name`` is a resource of one of these kinds. Unlike the webhooks' conditions it is exact: a name that only
    begins like an accelerator's is none. Raises PatternError."""
    resources = [known for known in catalog.resources if known.kind in kinds]
    tests = [among("name", [known.name for known in resources if known.name is not None])]
    for pattern in (known.pattern.pattern for known in resources if known.name is None):
        tests += [f"name.startsWith({quote_cel(start)}) && name.matches({quote_cel(pattern)})" for start in prefixes(pattern)]
    return " ||\n  ".join(tests)
