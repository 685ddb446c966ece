"""What the owner of a namespace may write to get more than it was given, and the guardrails that it is up against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.policy import API_VERSION

Raw = dict[str, Any]
LABEL = "tests.berth.dev/hostile"
CAP, PROTECTION = 3600, 12 * 3600
"""seconds that the guardrails leave"""
POOL = "hostile-pool"
"""key of the templates' labels and taints"""


def policy(kind: str, name: str, spec: Any, namespace: str | None = None) -> Raw:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def own(namespace: str, spec: Any, name: str = "own") -> Raw:
    """In force, unless the spec says otherwise."""
    return policy("GPUPolicy", name, {"mode": "Enforce", **spec} if isinstance(spec, dict) else spec, namespace)


def _template(name: str) -> Raw:
    return policy("GPUNodeTemplate", name, {"labels": {POOL: name}, "taints": [{"key": POOL, "value": name}]})


def _guard(name: str, allow: Raw) -> Raw:
    """For the namespaces whose label LABEL is ``name``."""
    spec = {
        "mode": "Enforce",
        "match": {"namespaceSelector": {"matchLabels": {LABEL: name}}, "exclude": {"users": ["break-glass"]}},
        "require": {
            "gracePeriod": {"max": "1h"},
            "protection": {"max": "12h"},
            "tolerations": {"forbid": [{"key": "team", "value": "other"}]},
            "families": {"in": ["ampere", "hopper"]},
        },
        "default": {"acceleratorTaints": "Tolerate", "gracePeriod": "60s"},
        **({"allow": allow} if allow else {}),
    }
    return policy("ClusterGPUPolicy", f"hostile-{name}", spec)


GUARDS = (
    _template("granted"),
    _template("denied"),
    _guard("closed", {}),
    _guard("open", {"nodeTemplates": ["granted"], "tolerations": [{"key": "team", "value": "mine"}]}),
)
GRANTED: Mapping[str, tuple[Raw, ...]] = {
    "closed": (),
    "open": ({"key": "team", "value": "mine"}, {"key": POOL, "value": "granted"}),
}
"""taints that the namespace's own policies may make pods tolerate, by the guard's name"""
TAINTS = ("team", "dedicated", POOL, "nvidia.com/mig", "example.com/cordoned", "spot")
TOLERATIONS: list[Raw] = [
    *({"key": key} for key in TAINTS),
    *({"key": "team", "value": value, "effect": effect} for value in ("mine", "other") for effect in ("NoSchedule", "NoExecute")),
    *({"key": POOL, "value": value} for value in ("granted", "denied")),
]
HOSTILE: dict[str, Raw] = {
    "tolerate everything": {"default": {"tolerate": TOLERATIONS}},
    "tolerate what nobody may": {"default": {"tolerate": [{"key": "node.kubernetes.io/unreachable"}, {"key": "team"}]}},
    "tolerate control planes": {"default": {"tolerate": [{"key": "node-role.kubernetes.io/control-plane"}, {"key": "team"}]}},
    "a day of grace": {"default": {"gracePeriod": "24h"}},
    "a day of grace, and a rule that allows it": {"require": {"gracePeriod": {"max": "48h"}}, "default": {"gracePeriod": "24h"}},
    "protected for ever": {"default": {"protectFor": "Always"}},
    "protected for two days": {"require": {"protection": {"max": "96h"}}, "default": {"protectFor": "48h"}},
    "a template that is not granted": {"default": {"nodeTemplate": "denied"}},
    "a template that may be granted": {"default": {"nodeTemplate": "granted"}},
    "a template that is not there": {"default": {"nodeTemplate": "nowhere"}},
    "machines outside": {"default": {"families": {"in": ["turing"]}}},
    "machines outside, required": {"require": {"families": {"in": ["turing"]}}},
    "everything": {
        "require": {"gracePeriod": {"max": "48h"}, "protection": {"max": "96h"}},
        "default": {
            "acceleratorTaints": "Tolerate",
            "nodeTemplate": "denied",
            "gracePeriod": "24h",
            "protectFor": "Always",
            "tolerate": TOLERATIONS,
            "capacity": ["spot"],
            "repair": ["accelerators"],
        },
    },
}
"""each by a name for the test"""
SMUGGLED: dict[str, Raw] = {
    "allow": {"allow": {"nodeTemplates": ["denied", "granted"], "tolerations": [{"key": key} for key in TAINTS]}},
    "exclude": {"match": {"exclude": {"users": ["editor"]}}},
    "namespaceSelector": {"match": {"namespaceSelector": {}}},
}
"""fields of a ClusterGPUPolicy that a GPUPolicy does not have"""
EVERYTHING = HOSTILE["everything"]
EVERYWHERE = {
    "match": {"namespaceSelector": {}, "exclude": {"users": ["editor"]}},
    **SMUGGLED["allow"],
    **EVERYTHING,
}
