"""Build the three CustomResourceDefinitions from ``definition``, so that an API server can store and validate
our objects itself.

A structural schema prunes unknown fields, so ``spec.requires`` of a client that asks for no validation is
dropped with a warning. kubectl asks for strict validation, and its request is denied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from policies.objects import definition
from policies.objects.crd_schema import spec_schema, strip_backticks
from policies.objects.field_types import Kind
from policies.policy import API_VERSION, GROUP

Raw = dict[str, Any]
UNSEEN = -1
"""``observedGeneration`` of an object that Berth has not looked at yet: no object has this generation."""
AUDIT = "audit"
"""The field of the status that `berth audit --serve` writes, and no replica of the server."""
ABOUT_AUDIT = "The policy's impact on existing pods, as counted by berth audit --serve."
COUNTS = {
    "pods": "Pods with accelerators that the policy applies to.",
    "wouldChange": "Of these, pods that the policy would change in Enforce.",
    "wouldDeny": "Of these, pods that the policy would deny in Enforce.",
    "notAsEnforced": "Of these, pods that lack the edits of the policy in Enforce: admitted without Berth, or before the policy changed.",
    "noLongerFits": "Of these, pods that the policy in Enforce would deny today.",
}
"""The counts in ``status.audit``, and their meaning."""
WIDE = 1
"""The priority of a column that is shown by ``-o wide`` alone."""
CATEGORY = "gpu"
"""The category by which ``kubectl get gpu -A`` lists all three kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindNames:
    """The names of a kind on the command line."""

    plural: str
    short: str


NAMES: dict[Kind, KindNames] = {
    "ClusterGPUPolicy": KindNames(plural="clustergpupolicies", short="cgpup"),
    "GPUPolicy": KindNames(plural="gpupolicies", short="gpup"),
    "GPUNodeTemplate": KindNames(plural="gpunodetemplates", short="gpunt"),
}


def crd(kind: Kind) -> Raw:
    """Return the CustomResourceDefinition of ``kind``: one version, served and stored, with a status
    subresource."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{NAMES[kind].plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if kind in definition.NAMESPACED else "Cluster",
            "names": _names(kind),
            "versions": [
                {
                    "name": API_VERSION.removeprefix(f"{GROUP}/"),
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(kind),
                    "schema": {"openAPIV3Schema": _schema(kind)},
                }
            ],
        },
    }


def _names(kind: Kind) -> Raw:
    return {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": NAMES[kind].plural,
        "singular": kind.lower(),
        "shortNames": [NAMES[kind].short],
        "categories": [CATEGORY],
    }


def _columns(kind: Kind) -> list[Raw]:
    """Return the columns of ``kubectl get``: what acts, whether Berth understood the object, and what it says of pods. What
    may be long is shown by ``-o wide``."""
    mode = _column("Mode", ".status.mode", "The effective mode: spec.mode, capped by the server's --max-mode.")
    where = {**_column("Where", ".status.where", "The namespaces and pods that the policy applies to."), "priority": WIDE}
    conflicted = _condition("Conflicted", "Whether another policy conflicts with this one; the condition's message names it.")
    acts = kind != "GPUNodeTemplate"
    return [
        *([mode] if acts else []),
        _condition("Accepted", "Whether Berth accepted the object; if not, the condition's message says why."),
        *([conflicted] if acts else []),
        *([_count("Would Change", "wouldChange"), _count("Would Deny", "wouldDeny")] if acts else []),
        *([where] if acts and kind not in definition.NAMESPACED else []),
        {**_column("What", ".status.what", "A summary of the spec."), "priority": WIDE},
        _column("Age", ".metadata.creationTimestamp", "Time since creation.", "date"),
    ]


def _column(name: str, path: str, description: str, of: str = "string") -> Raw:
    return {"name": name, "type": of, "jsonPath": path, "description": description}


def _count(name: str, field: str) -> Raw:
    return _column(name, f".status.{AUDIT}.{field}", COUNTS[field], "integer")


def _condition(name: str, description: str) -> Raw:
    return _column(name, f'.status.conditions[?(@.type=="{name}")].status', description)


def _schema(kind: Kind) -> Raw:
    """Return the schema of an object; Kubernetes itself describes and validates apiVersion, kind and
    metadata."""
    return {
        "type": "object",
        "description": strip_backticks(definition.ABOUT[kind]),
        "required": ["spec"],
        "properties": {"spec": spec_schema(kind), "status": _status(kind)},
    }


def _status(kind: Kind) -> Raw:
    """Return the schema of the status that Berth writes.

    Its sizes are bounded by the writer, not here: a status that is rejected is of no use. An object that Berth has not
    processed yet has observedGeneration -1 by default, because tools that follow kstatus take an object without a status
    for ready.
    """
    audit = {} if kind == "GPUNodeTemplate" else {AUDIT: _map(ABOUT_AUDIT, **{name: _number(text) for name, text in COUNTS.items()})}
    acting = {} if kind == "GPUNodeTemplate" else {"mode": _word("The effective mode: spec.mode, capped by the server's --max-mode.")}
    if acting:
        acting["server"] = _map(
            "Options of the server that applies the policy. berth why, effective, scan, audit and console use them too.",
            platforms=_words("The node platforms: those of --platforms, or those that it detected."),
            queues=_words("The queue systems: --queues."),
        )
    return {**_properties_of_status(acting, audit), "default": {"observedGeneration": UNSEEN}}


def _properties_of_status(acting: Raw, audit: Raw) -> Raw:
    return _map(
        "The status of the object, written only by Berth.",
        observedGeneration={
            **_number("The metadata.generation that this status describes; -1 until Berth has processed the object."),
            "minimum": UNSEEN,
        },
        **acting,
        where=_word("The namespaces that the object applies to: all, or a selector with the current number of namespaces."),
        what=_word("A summary of the spec."),
        conditions={
            "type": "array",
            "description": "Accepted, Conflicted, Clipped, Inexpressible, QuotaNotCovered, AdvertisedTwice, and Ready and Stalled"
            " for tools that wait: kubectl wait --for=condition=Ready gpup/NAME",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": _condition_schema(),
        },
        lastGood=_map(
            "The last valid version, if the current one is invalid. It stays in effect until the error is fixed.",
            generation=_number("Its metadata.generation."),
            spec={"type": "object", "description": "Its spec.", "x-kubernetes-preserve-unknown-fields": True},
        ),
        **audit,
    )


def _condition_schema() -> Raw:
    """Return the schema of one condition, with the fields of metav1.Condition."""
    return {
        **_map(
            "A condition of the object.",
            type=_word("The type of the condition."),
            status={**_word("Whether the condition is true."), "enum": ["True", "False", "Unknown"]},
            reason=_word("The reason, in one word."),
            message=_word("The reason, and what to do."),
            lastTransitionTime={**_word("When the status of the condition last changed."), "format": "date-time"},
            observedGeneration=_number("The metadata.generation that this condition describes."),
        ),
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    }


def _map(description: str, **properties: Raw) -> Raw:
    return {"type": "object", "description": description, "properties": properties}


def _word(description: str) -> Raw:
    return {"type": "string", "description": description}


def _words(description: str) -> Raw:
    return {"type": "array", "description": description, "items": {"type": "string"}}


def _number(description: str) -> Raw:
    return {"type": "integer", "format": "int64", "minimum": 0, "description": description}
