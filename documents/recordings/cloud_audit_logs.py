"""Entries of GKE's Cloud Audit Logs as the audit events that they were made of.

Google writes each event of the API server as a LogEntry whose ``protoPayload`` is an AuditLog: ``methodName``
``io.k8s.core.v1.pods.create``, ``resourceName`` ``core/v1/namespaces/NS/pods/NAME``, ``request`` and ``response`` the
objects with an ``@type``, ``status`` a google.rpc.Status (no code: OK), ``authenticationInfo.principalEmail`` the user,
the entry's ``labels`` the event's annotations (``labels["audit.k8s.io/truncated"]`` and the webhooks' patches too), and
``insertId`` its auditID. Sources: "GKE audit logging information" and the reference of LogEntry and AuditLog in Google Cloud's
documentation; how GoogleCloudPlatform/khi reads annotations of webhooks from labels.

The form lacks the user's groups, the request's URI, and with it whether it was a dry run, and whether a patch created the
object. Groups are given back where the API server's own authenticators fix them by the name.
"""

from __future__ import annotations

from typing import Any

_METHOD = "io.k8s.core.v1."
"""The beginning of methods of the core group."""
_FORBIDDEN = 7
"""PERMISSION_DENIED of google.rpc.Code, written for a 403."""


def event(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of Cloud Logging as an event of an audit log; as it is, if it is none of an AuditLog."""
    payload = entry.get("protoPayload")
    if not isinstance(payload, dict) or not isinstance(method := payload.get("methodName"), str):
        return entry
    parts = method.removeprefix(_METHOD).split(".") if method.startswith(_METHOD) else []
    verb, resource = (parts[-1], parts[0]) if len(parts) > 1 else ("", "")
    request, response = _object(payload.get("request")), _object(payload.get("response"))
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata" if request is None else "Request" if response is None else "RequestResponse",
        "auditID": _text(entry.get("insertId")),
        "stage": "ResponseComplete" if _is_last(entry.get("operation")) else "ResponseStarted",
        "verb": verb,
        "user": _user(payload.get("authenticationInfo")),
        "objectRef": {"resource": resource, "subresource": ".".join(parts[1:-1]), "namespace": _namespace(payload.get("resourceName"))},
        "responseStatus": {"code": _code(payload.get("status"), response)},
        "requestObject": request,
        "responseObject": response,
        "annotations": entry.get("labels"),
    }


def _object(value: object) -> dict[str, Any] | None:
    """Return an object without the type that Google adds."""
    return {key: one for key, one in value.items() if key != "@type"} if isinstance(value, dict) else None


def _is_last(operation: object) -> bool:
    """Return whether an entry is the last of its request: only of a request that lasts, such as a watch, there are two."""
    return not isinstance(operation, dict) or operation.get("last") is True or operation.get("first") is not True


def _user(value: object) -> dict[str, Any]:
    name = _text(value.get("principalEmail")) if isinstance(value, dict) else ""
    groups: list[str] = []
    if name.startswith("system:serviceaccount:"):
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{name.split(':')[2]}"]
    elif name.startswith("system:node:"):
        groups = ["system:nodes"]
    return {"username": name, "groups": groups}


def _namespace(name: object) -> str:
    match _text(name).split("/"):
        case [_, _, "namespaces", namespace, *_]:
            return namespace
    return ""


def _code(status: object, response: dict[str, Any] | None) -> int | None:
    """Return the HTTP status as far as it is known; None otherwise."""
    if response is not None and response.get("kind") == "Status" and isinstance(response.get("code"), int):
        code: int = response["code"]
        return code
    return 403 if isinstance(status, dict) and status.get("code") == _FORBIDDEN else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
