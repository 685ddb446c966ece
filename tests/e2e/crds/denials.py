"""Bad objects of our kinds, and what the API server says of each."""

from __future__ import annotations

from policies.objects import definition
from policies.objects.field_types import Kind

C, G, T = definition.KINDS
SPAN = "must be a duration in whole seconds, from 1s to a year (8784h); write 2h, 90s or 1h30m"
AUTHORS = (
    "a ClusterGPUPolicy with require cannot have",
    "because authors choose what it matches; move require to a policy that matches by namespaceSelector or gpus",
)
BAD: list[tuple[Kind, str, str]] = [
    (C, "{mode: audit}", 'spec.mode: Unsupported value: "audit": supported values: "Audit", "Warn", "Enforce"'),
    (C, "{modes: Audit}", 'unknown field "spec.modes"'),
    (C, "{require: {families: {}}}", "spec.require.families: Required value: must have in or notIn; write in: [hopper]"),
    (C, "{require: {families: {in: hopper}}}", "spec.require.families.in in body must be of type array"),
    (C, "{require: {families: {in: []}}}", "spec.require.families.in in body should have at least 1 items"),
    (C, "{require: {families: {in: [a], notIn: [a, b]}}}", "spec.require.families: Invalid value: no name is left: notIn has every"),
    (C, "{require: {gpuMemory: {min: 80, max: 40}}}", "spec.require.gpuMemory: Invalid value: min is greater than max; no value is"),
    (C, "{require: {gpuMemory: {}}}", "spec.require.gpuMemory: Required value: must have min or max; write min: 40"),
    (C, "{require: {gpuMemory: {min: 40Gi}}}", "spec.require.gpuMemory.min in body must be of type integer"),
    (C, "{require: {gpuMemory: {min: 2.5}}}", "spec.require.gpuMemory.min in body must be of type integer"),
    (C, "{require: {capacity: [spott]}}", 'capacity[0]: Unsupported value: "spott": supported values: "spot", "on-demand", "reserved"'),
    (C, "{require: {longRuns: {over: 2h}}}", "spec.require.longRuns.capacity: Required value"),
    (C, "{require: {gpusPerPod: {max: 2, oneOf: [4, 8]}}}", "spec.require.gpusPerPod: Invalid value: no number is left: every number of"),
    (C, "{require: {gpusPerPod: {}}}", "spec.require.gpusPerPod: Required value: must have max or oneOf; write max: 8"),
    (C, "{require: {gracePeriod: {max: 3600}}}", "spec.require.gracePeriod.max in body must be of type string"),
    (C, "{require: {tolerations: {}}}", "spec.require.tolerations.forbid: Required value"),
    (C, "{default: {gracePeriod: 30d}}", f'spec.default.gracePeriod: Invalid value: "30d": {SPAN}'),
    (C, "{default: {gracePeriod: ''}}", f'spec.default.gracePeriod: Invalid value: "": {SPAN}'),
    (C, "{default: {gracePeriod: 1.5s}}", f'spec.default.gracePeriod: Invalid value: "1.5s": {SPAN}'),
    (C, "{default: {gracePeriod: 9999h}}", f'spec.default.gracePeriod: Invalid value: "9999h": {SPAN}'),
    (C, "{default: {protectFor: always}}", f'spec.default.protectFor: Invalid value: "always": {SPAN}, or Always'),
    (C, "{default: {acceleratorTaints: yes}}", "spec.default.acceleratorTaints in body must be of type string"),
    (C, "{default: {mig: {}}}", "spec.default.mig: Invalid value: must have slice or usableMemory; write slice: 10gb"),
    (C, "{default: {mig: {slice: 10gb, usableMemory: 9Gi}}}", "default.mig: Invalid value: must have only one of slice and usableMemory;"),
    (C, "{default: {mig: {slice: 2g.20gb}}}", '"2g.20gb": is not a nominal MIG slice size; write slice: 20gb'),
    (C, "{default: {mig: {slice: ten}}}", 'mig.slice: Invalid value: "ten": is not a nominal MIG slice size; write slice: 10gb'),
    (C, "{default: {mig: {usableMemory: '0'}}}", 'Invalid value: "0": must be an amount of memory; write usableMemory: 9.5Gi'),
    (C, "{default: {tolerate: [{key: a b}]}}", 'spec.default.tolerate[0].key: Invalid value: "a b": is not a taint key; write key: team'),
    (C, "{default: {tolerate: [{key: a, operator: Exists}]}}", 'unknown field "spec.default.tolerate[0].operator"'),
    (C, "{match: {gpus: {min: -1}}}", "spec.match.gpus.min in body should be greater than or equal to 0"),
    (C, "{match: {podSelector: {}}, require: {capacity: [spot]}}", f"match.podSelector: Forbidden: {AUTHORS[0]} podSelector, {AUTHORS[1]}"),
    (C, "{match: {workloads: [Job]}, require: {capacity: [spot]}}", f"match.workloads: Forbidden: {AUTHORS[0]} workloads, {AUTHORS[1]}"),
    (C, "{match: {exclude: {users: [a b]}}}", '"a b": is not a user name; write users: [system:'),
    (C, "{match: {podSelector: {matchLabels: {a b: c}}}}", "matchLabels: Invalid value: has a key that is not a label key; write match"),
    (C, "{match: {namespaceSelector: {matchLabels: {a: b c}}}}", 'matchLabels[a]: Invalid value: "b c": is not a label value; write match'),
    (C, "{match: {podSelector: {matchExpressions: [{key: a, operator: In}]}}}", "values: Required value: In and NotIn must have at least"),
    (C, "{match: {podSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}}", "Forbidden: Exists and DoesNotExist"),
    (G, "{allow: {nodeTemplates: [a]}}", 'unknown field "spec.allow"'),
    (G, "{match: {namespaceSelector: {}}}", 'unknown field "spec.match.namespaceSelector"'),
    (G, "null", "spec: Required value"),
    (T, "{}", "spec.labels: Required value"),
    (T, "{labels: {}}", "spec.labels in body should have at least 1 properties"),
    (T, "{labels: {a: b}, gpus: {migProfiles: [1g.10gb]}}", "gpus.migProfiles: Forbidden: only nodes that share by MIG have slices"),
    (T, "{labels: {a: b}, taints: [{value: x}]}", "spec.taints[0].key: Required value"),
]  # fmt: skip
"""(kind, spec, a part of the rejection: the field and the wanted form)"""
