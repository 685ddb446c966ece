"""A client of the API server that sends and returns JSON as it stands, with statuses and warnings.

Not the official client: what is tested is what becomes of odd JSON (nulls, unknown fields, empty terms), and typed objects drop just
that. Connections are kept alive, as many as calls were ever made at once.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

Raw = dict[str, Any]
CALL_SECONDS = 60
"""above the 34 s that the API server gives a create with webhooks"""
_WARNING = re.compile(r'^299 \S+ "((?:[^"\\]|\\.)*)"')
MERGE, STRATEGIC, JSON_PATCH = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"


class ApiError(Exception):
    """A status from 400 on; the message is the API server's."""

    def __init__(self, method: str, path: str, reply: Reply) -> None:
        super().__init__(f"{method} {path}: {reply.status} {reply.message}")
        self.reply = reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer."""

    status: int
    body: Raw
    warnings: tuple[str, ...] = ()
    """as kubectl prints them after "Warning: " """
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.status < 400

    @property
    def message(self) -> str:
        """Why it was rejected; "" of an object."""
        return str(self.body.get("message", "")) if self.body.get("kind") == "Status" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Where objects of a kind are found."""

    api_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str = "") -> str:
        base = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        where = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{base}{where}/{self.plural}{f'/{quote(name)}' if name else ''}"


@dataclass(kw_only=True)
class Api:
    """Calls as one user. ``user``: impersonated by an administrator, whose token it is."""

    host: str
    port: int
    token: str
    ca: Path
    user: str | None = None
    group: str = "system:masters"
    _idle: deque[http.client.HTTPSConnection] = field(default_factory=deque)
    _kinds: dict[tuple[str, str], Kind] = field(default_factory=dict)

    def acting_as(self, user: str, group: str = "system:masters") -> Api:
        """The same server as another user."""
        return replace(self, user=user, group=group)

    def close(self) -> None:
        """Every connection that is kept; those of who acts as others too."""
        while self._idle:
            self._idle.pop().close()

    def forget(self) -> None:
        """Nothing is kept of the server: neither connections nor what kinds it has."""
        self.close()
        self._kinds.clear()

    def call(self, method: str, path: str, body: Any = None, *, content: str = "application/json", **query: str) -> Reply:
        """One call; any status is returned. Raises OSError where the server can't be reached."""
        if query:
            path = f"{path}?{urlencode(query)}"
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        begun = time.perf_counter()
        status, headers, text = self._sent(method, path, data, self._headers(content))
        took = time.perf_counter() - begun
        return Reply(status=status, body=_parsed(text), warnings=tuple(_warnings(headers)), seconds=took)

    def text(self, path: str) -> str:
        """A page that is no JSON, such as /metrics."""
        status, _, text = self._sent("GET", path, None, self._headers("application/json"))
        assert status == 200, f"GET {path}: {status} {text[:200]!r}"
        return text.decode()

    def _sent(self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Once more on a new connection where a kept one turns out to be closed before anything came of the call."""
        while True:
            kept = self._kept()
            connection = kept or self._connection()
            try:
                connection.request(method, path, data, dict(headers))
                answer = connection.getresponse()
                text = answer.read()
            except BaseException as error:
                connection.close()
                if kept is None or not isinstance(error, (ConnectionError, ssl.SSLError, http.client.HTTPException)):
                    raise
                continue
            self._idle.append(connection)
            return answer.status, answer.headers, text

    def _kept(self) -> http.client.HTTPSConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, context=self._context, timeout=CALL_SECONDS)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def _headers(self, content: str) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content, "Accept": "application/json"}
        if self.user is not None:
            headers["Impersonate-User"] = self.user
            headers["Impersonate-Group"] = self.group
        return headers

    def kind(self, api_version: str, kind: str) -> Kind:
        """From discovery. Raises LookupError for a kind that the server does not have."""
        if (found := self._kinds.get((api_version, kind))) is None:
            listed = self.call("GET", f"/{'api' if '/' not in api_version else 'apis'}/{api_version}")
            for one in listed.body.get("resources", ()):
                if "/" not in one["name"]:
                    where = Kind(api_version=api_version, plural=one["name"], namespaced=one["namespaced"])
                    self._kinds[api_version, one["kind"]] = where
            if (found := self._kinds.get((api_version, kind))) is None:
                raise LookupError(f"the API server has no {kind} in {api_version}")
        return found

    def path_of(self, value: Raw, namespace: str | None = None, *, named: bool = True) -> str:
        """Of an object, by its apiVersion, kind, namespace and name."""
        metadata = value.get("metadata", {})
        where = self.kind(value["apiVersion"], value["kind"])
        return where.path(metadata.get("namespace") or namespace or "default", metadata["name"] if named else "")

    def try_create(self, value: Raw, namespace: str | None = None, *, dry_run: bool = False) -> Reply:
        """Any status is returned."""
        query = {"dryRun": "All"} if dry_run else {}
        return self.call("POST", self.path_of(value, namespace, named=False), value, **query)

    def create(self, value: Raw, namespace: str | None = None, *, dry_run: bool = False) -> Raw:
        """The object as stored. Raises ApiError."""
        return self._done("POST", self.path_of(value, namespace, named=False), self.try_create(value, namespace, dry_run=dry_run))

    def apply(self, value: Raw, namespace: str | None = None) -> Reply:
        """Server-side apply; any status is returned."""
        path = self.path_of(value, namespace)
        return self.call("PATCH", path, value, content="application/apply-patch+yaml", fieldManager="berth-tests", force="true")

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Raw | None:
        """None where there is none. Raises ApiError for other rejections."""
        path = self.kind(api_version, kind).path(namespace, name)
        reply = self.call("GET", path)
        return None if reply.status == 404 else self._done("GET", path, reply)

    def list(self, api_version: str, kind: str, namespace: str | None = None, **query: str) -> list[Raw]:
        """All of them, or those of a namespace. ``labelSelector`` and ``fieldSelector`` as query."""
        path = self.kind(api_version, kind).path(namespace)
        items: list[Raw] = self._done("GET", path, self.call("GET", path, **query))["items"]
        return items

    def replace(self, value: Raw, subresource: str = "") -> Raw:
        """The object as stored. Raises ApiError."""
        path = self.path_of(value) + (f"/{subresource}" if subresource else "")
        return self._done("PUT", path, self.call("PUT", path, value))

    def patch(self, value: Raw, change: Any, *, content: str = MERGE, subresource: str = "") -> Raw:
        """The object as stored. Raises ApiError."""
        path = self.path_of(value) + (f"/{subresource}" if subresource else "")
        return self._done("PATCH", path, self.call("PATCH", path, change, content=content))

    def delete(self, value: Raw, *, grace: int | None = None) -> None:
        """Whether it was there or not. Raises ApiError for other rejections."""
        path = self.path_of(value)
        query = {"propagationPolicy": "Background"} | ({} if grace is None else {"gracePeriodSeconds": str(grace)})
        reply = self.call("DELETE", path, **query)
        if reply.status != 404:
            self._done("DELETE", path, reply)

    def delete_all(self, api_version: str, kind: str, namespace: str | None = None, *, grace: int = 0) -> None:
        """Every object of a kind in a namespace. Raises ApiError."""
        path = self.kind(api_version, kind).path(namespace)
        query = {"propagationPolicy": "Background", "gracePeriodSeconds": str(grace)}
        self._done("DELETE", path, self.call("DELETE", path, **query))

    @staticmethod
    def _done(method: str, path: str, reply: Reply) -> Raw:
        if not reply.ok:
            raise ApiError(method, path, reply)
        return reply.body


def _parsed(text: bytes) -> Raw:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # what is nested too deep for Python is JSON to others
        return {"kind": "Status", "message": text.decode(errors="replace").strip()}
    return value if isinstance(value, dict) else {"value": value}


def _warnings(headers: http.client.HTTPMessage) -> Iterator[str]:
    for value in headers.get_all("Warning") or ():
        if (found := _WARNING.match(value)) is not None:
            yield re.sub(r"\\(.)", r"\1", found.group(1))
