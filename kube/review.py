"""An AdmissionReview: what the API server asks of a webhook, and the form of the answer (k8s.io/api/admission/v1 types.go).

Nothing here raises: a part of another type reads as one that is absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kube.tree import Path, Raw, map_at

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
OBJECT: Path = ("request", "object")
PODS = ("", "pods")
"""The API group and resource of pods."""
ANYBODY = "system:anonymous"
NODES = "system:nodes"
"""The user who is not authenticated, and the group of kubelets (k8s.io/apiserver pkg/authentication/user)."""
WARNING_LENGTH = 256
"""The most characters of a warning: the API server cuts every warning to this length once all of them exceed
the total, so none is longer."""
WARNINGS_TOTAL = 4096
"""The most characters of all warnings of a response together (endpoints/filters/warning.go); the API server
drops the rest."""


def resource_of(document: Any) -> tuple[str, str] | None:
    """Return the API group and resource under review, ``("batch", "jobs")``; None where the document does not say."""
    try:
        resource = document["request"]["resource"]
        group, name = resource.get("group", ""), resource["resource"]
    except (LookupError, TypeError, AttributeError):
        return None
    return (group, name) if isinstance(group, str) and isinstance(name, str) else None


def object_kind(request: Raw) -> tuple[str, str] | None:
    """Return apiVersion and kind of the object under review, which may have been converted to an equivalent one; None where the
    request does not say."""
    kind = map_at(request, "kind")
    match kind.get("group"), kind.get("version"), kind.get("kind"):
        case str(group), str(version), str(name) if version and name:
            return (f"{group}/{version}" if group else version), name
    return None


def object_name(request: Raw, value: Mapping[str, Any]) -> str:
    """Return the name of the object under review, else its generateName, else ""."""
    metadata = map_at(value, "metadata")
    names = (request.get("name"), metadata.get("name"), metadata.get("generateName"))
    return next((name for name in names if isinstance(name, str) and name), "")


def old_object(request: Raw) -> Raw | None:
    """Return the object before an update."""
    value = request.get("oldObject")
    return value if isinstance(value, dict) and request.get("operation") == "UPDATE" else None


def user_of(request: Raw) -> tuple[str, tuple[str, ...]]:
    """Return the name of the requesting user, anybody's if it cannot be read, and the groups.

    Unreadable groups count as none; an item that is no text equals no group's name.
    """
    info = request.get("userInfo")
    if not isinstance(info, dict):
        return ANYBODY, ()
    name, groups = info.get("username"), info.get("groups")
    return name if isinstance(name, str) and name else ANYBODY, tuple(groups) if isinstance(groups, list) else ()


def allow(uid: str) -> Raw:
    """Return the response that allows a request unchanged."""
    return {"uid": uid, "allowed": True}


def deny(uid: str, message: str, *, code: int = 403, reason: str = "Forbidden") -> Raw:
    """Return the response that denies a request. ``code`` and ``reason``: an HTTP status, and its name in Kubernetes."""
    return {"uid": uid, "allowed": False, "status": {"status": "Failure", "code": code, "reason": reason, "message": message}}


_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([0-9A-Za-z-]{1,128})"(?:\s*,\s*"kind"\s*:\s*\{\s*"group"\s*:\s*"([a-z0-9.-]*)")?')
_NAMESPACE = re.compile(
    rb'\{"kind":"AdmissionReview","apiVersion":' + _STRING + rb',"request":\{"uid":' + _STRING
    + rb'(?:,"(?:kind|resource|requestKind|requestResource)":\{"[^{}]*+\}|,"(?:subResource|requestSubResource|name)":' + _STRING + rb")*+"
    + rb',"namespace":"([a-z0-9-]{1,63})","operation":',
)  # fmt: skip
"""Matches everything before the namespace, field by field in the order of AdmissionRequest, from the first byte.

Of these fields an author writes only the name, which is one string, whatever it contains.
"""


class Head(NamedTuple):
    """The fields in the first bytes of a review."""

    uid: str
    namespace: str | None
    """None where it cannot be determined, for example behind a name of kilobytes."""
    group: str = ""
    """The API group of the object."""


def head_of(body: bytes) -> Head | None:
    """Return the head of an AdmissionReview as the API server writes it, from its first bytes; None for
    anything else."""
    uid = _UID.search(body)
    if uid is None:
        return None
    namespace = _NAMESPACE.match(body)
    return Head(uid[1].decode(), namespace[1].decode() if namespace else None, (uid[2] or b"").decode())
