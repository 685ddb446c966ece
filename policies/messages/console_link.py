"""Where the console explains an answer: an address that ends denials and warnings, where the server is told of a console.

It names no pod and no uid, since the Event of a Job whose pods are denied is counted by its text (kubernetes#106160): it names the
workload that made the pod, which is the same for all its pods, else only the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LONGEST_URL = 100
"""Characters of the console's own address."""
URL = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[A-Za-z0-9._~-]+)*/?", re.ASCII)
"""Scheme, host, port and path; no query, since one is added. IPv6 addresses have names where people click."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
"""Names of objects (RFC 1123 subdomain): nothing in them has to be escaped in an address."""
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}", re.ASCII)


def controller(namespace: str, pod: Mapping[str, Any]) -> str:
    """Return ``NAMESPACE/KIND/NAME`` of what made a pod; "" if nothing did, or if it has no proper name: an author may write any."""
    metadata = pod.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") is True:
            return link_workload(namespace, owner.get("kind"), owner.get("name"))
    return ""


def link_workload(namespace: object, kind: object, name: object) -> str:
    """Return ``NAMESPACE/KIND/NAME``; "" if one of them is none."""
    match namespace, kind, name:
        case str(space), str(what), str(whose) if _NAME.fullmatch(space) and _KIND.fullmatch(what) and _NAME.fullmatch(whose):
            return f"{space}/{what}/{whose}"
    return ""


def see(url: str, workload: str, code: str) -> str:
    """Return ``See https://console.example/job?workload=ml/Job/train``. ``workload``: the result of ``link_workload``."""
    return f"See {url}/job?{f'workload={workload}' if workload else f'code={code}'}"
