"""Build the three CustomResourceDefinitions from ``definition``, so that an API server can store and validate
our objects itself.

A structural schema prunes unknown fields, so ``spec.requires`` of a client that asks for no validation is
dropped with a warning. kubectl asks for strict validation, and its request is denied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from policies.objects import definition
from policies.objects.crd_schema import plain, spec_schema
from policies.objects.field_types import Kind
from policies.policy import API_VERSION, GROUP

Raw = dict[str, Any]
UNSEEN = -1
"""``observedGeneration`` of an object that Berth has not looked at yet: no object has this generation."""
AUDIT = "audit"
"""The field of the status that `berth audit --serve` writes, and no replica of the server."""
ABOUT_AUDIT = "What it says of the pods that exist, as berth audit --serve counts them."
COUNTS = {
    "pods": "The pods with accelerators that it applies to.",
    "wouldChange": "Of those, the ones that it would have changed, were it in Enforce.",
    "wouldDeny": "Of those, the ones that it would have denied, were it in Enforce.",
    "notAsEnforced": "Of those, the ones that lack what it writes in Enforce: admitted while Berth was away, or before it was what it is.",
    "noLongerFits": "Of those, the ones that it would deny today.",
}
"""The counts in ``status.audit``, and their meaning."""
WIDE = 1
"""The priority of a column that is shown by ``-o wide`` alone."""
CATEGORY = "gpu"
"""The category by which ``kubectl get gpu -A`` lists all three kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of a kind on the command line."""

    plural: str
    short: str


NAMES: dict[Kind, Names] = {
    "ClusterGPUPolicy": Names(plural="clustergpupolicies", short="cgpup"),
    "GPUPolicy": Names(plural="gpupolicies", short="gpup"),
    "GPUNodeTemplate": Names(plural="gpunodetemplates", short="gpunt"),
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
    mode = _column("Mode", ".status.mode", "What acts: Audit, Warn or Enforce; less than spec.mode where the server's --max-mode is.")
    where = {**_column("Where", ".status.where", "The namespaces that it is for."), "priority": WIDE}
    conflicted = _condition(
        "Conflicted", "Whether another policy wants something else for the same pods; its message says which, and what."
    )
    acts = kind != "GPUNodeTemplate"
    return [
        *([mode] if acts else []),
        _condition("Accepted", "Whether Berth understood it; if not, its message says what is wrong."),
        *([conflicted] if acts else []),
        *([_count("Would Change", "wouldChange"), _count("Would Deny", "wouldDeny")] if acts else []),
        *([where] if acts and kind not in definition.NAMESPACED else []),
        {**_column("What", ".status.what", "What it does, in one line."), "priority": WIDE},
        _column("Age", ".metadata.creationTimestamp", "Since when it is there.", "date"),
    ]


def _column(name: str, path: str, about: str, of: str = "string") -> Raw:
    return {"name": name, "type": of, "jsonPath": path, "description": about}


def _count(name: str, field: str) -> Raw:
    return _column(name, f".status.{AUDIT}.{field}", COUNTS[field], "integer")


def _condition(name: str, about: str) -> Raw:
    return _column(name, f'.status.conditions[?(@.type=="{name}")].status', about)


def _schema(kind: Kind) -> Raw:
    """Return the schema of an object; Kubernetes itself describes and validates apiVersion, kind and
    metadata."""
    return {
        "type": "object",
        "description": plain(definition.ABOUT[kind]),
        "required": ["spec"],
        "properties": {"spec": spec_schema(kind), "status": _status(kind)},
    }


def _status(kind: Kind) -> Raw:
    """Return the schema of the status that Berth writes.

    Its sizes are bounded by the writer, not here: a status that is denied helps nobody. An object that Berth has not
    looked at yet has observedGeneration -1 by default: who waits by the rules of kstatus takes one without any status
    for one that is in force.
    """
    audit = {} if kind == "GPUNodeTemplate" else {AUDIT: _map(ABOUT_AUDIT, **{name: _number(text) for name, text in COUNTS.items()})}
    mode = {} if kind == "GPUNodeTemplate" else {"mode": _word("What acts: spec.mode, capped by the server's --max-mode.")}
    return {**_properties_of_status(mode, audit), "default": {"observedGeneration": UNSEEN}}


def _properties_of_status(mode: Raw, audit: Raw) -> Raw:
    return _map(
        "What Berth makes of the object. Written by Berth alone.",
        observedGeneration={
            **_number("The metadata.generation that this status is about; -1 until Berth has looked at the object."),
            "minimum": UNSEEN,
        },
        **mode,
        where=_word("The namespaces that it is for: all of them, or a selector and how many it picks now."),
        what=_word("What it does, in one line."),
        conditions={
            "type": "array",
            "description": "Accepted, Conflicted, Clipped, Inexpressible, QuotaNotCovered, AdvertisedTwice; Ready and Stalled for"
            " who waits: kubectl wait --for=condition=Ready gpup/NAME",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": _condition_schema(),
        },
        lastGood=_map(
            "The last form that was understood, while the newest is not. It acts until the mistake is mended.",
            generation=_number("Its metadata.generation."),
            spec={"type": "object", "description": "Its spec.", "x-kubernetes-preserve-unknown-fields": True},
        ),
        **audit,
    )


def _condition_schema() -> Raw:
    """Return the schema of one condition, with the fields of metav1.Condition."""
    return {
        **_map(
            "One thing that holds, or does not.",
            type=_word("Which."),
            status={**_word("Whether it holds."), "enum": ["True", "False", "Unknown"]},
            reason=_word("Why, in one word."),
            message=_word("Why, and what to do."),
            lastTransitionTime={**_word("When the status last changed."), "format": "date-time"},
            observedGeneration=_number("The metadata.generation that this condition is about."),
        ),
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    }


def _map(about: str, **properties: Raw) -> Raw:
    return {"type": "object", "description": about, "properties": properties}


def _word(about: str) -> Raw:
    return {"type": "string", "description": about}


def _number(about: str) -> Raw:
    return {"type": "integer", "format": "int64", "minimum": 0, "description": about}
