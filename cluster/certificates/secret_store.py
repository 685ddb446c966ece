"""The Secret of the certificates, with an optimistic lock: of two replicas that write at once, one succeeds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.client.api_client import Client
from cluster.client.errors import Rejected
from kube.tree import Raw, map_at

REQUEST = "berth.dev/rotate"
"""Annotation by which a person asks for a rotation: ``ca`` or ``leaf``, a space, and a text that no earlier
request had (``berth certs rotate``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """The Secret as read. Its repr holds no data."""

    value: Raw | None = field(repr=False)
    """The object; None if there is none."""
    date: str
    """The Date header of the answer: the API server's clock."""

    @property
    def data(self) -> dict[str, bytes]:
        """The fields, decoded; one that is no base64 is empty."""
        return {key: decoded(text) for key, text in map_at(self.value, "data").items()}

    @property
    def request(self) -> str:
        """The request for a rotation; "" if there is none."""
        return str(map_at(self.value, "metadata", "annotations").get(REQUEST, ""))


class SecretStore:
    """Reads and writes one Secret. All calls raise Rejected and Unreachable."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self.namespace, self.name = namespace, name
        self.folder = f"/api/v1/namespaces/{namespace}/secrets"
        """The path of all Secrets of its namespace, for a watch."""
        self.path = f"{self.folder}/{name}"

    async def read(self) -> StoredSecret:
        """Return the Secret as it is now."""
        reply = await self._client.call("GET", self.path)
        if reply.status == 404:
            return StoredSecret(value=None, date=reply.date)
        return StoredSecret(value=reply.object(f"GET {self.path}"), date=reply.date)

    async def write(self, before: StoredSecret, data: Mapping[str, bytes]) -> bool:
        """Write these fields in place of those that were read; False if another replica was faster. A 404 for a
        new Secret means that its namespace does not exist (NamespaceLifecycle), and is Rejected."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        if before.value is None:
            metadata = {"name": self.name, "labels": {"app.kubernetes.io/name": "berth"}}
            made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded}
            reply = await self._client.call("POST", self.folder, body=made)
        else:
            body = {**before.value, "data": {**map_at(before.value, "data"), **encoded}}
            reply = await self._client.call("PUT", self.path, body=body)
        if reply.status == 409 or (reply.status == 404 and before.value is not None):
            return False
        if not reply.ok:
            raise Rejected(f"writing {self.path}", reply)
        return True


def decoded(text: object) -> bytes:
    """Return what a field of an object holds in base64; nothing if it holds no base64."""
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""
