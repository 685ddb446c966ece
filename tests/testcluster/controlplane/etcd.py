"""Writing straight into a cluster's etcd, past the API server, its schemas and its rights: what a restored or tampered store may hold.

By etcd's JSON gateway over HTTP (etcd.io/docs, "gRPC gateway"): keys and values are base64. The API server keeps custom resources as
JSON under /registry/GROUP/PLURAL/[NAMESPACE/]NAME.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.cluster import Cluster

URLS = "--listen-client-urls="
AT_ONCE = 100
"""writes of one transaction: etcd takes 128 (--max-txn-ops)"""
MOST = 1 << 20
"""bytes of one transaction: etcd takes 1.5 MiB (--max-request-bytes)"""


@dataclass(frozen=True, slots=True)
class Etcd:
    """The store of one cluster."""

    connection: http.client.HTTPConnection

    def put(self, key: str, value: bytes) -> None:
        """One value, whatever it is."""
        self._call("put", {"key": _text(key.encode()), "value": _text(value)})

    def put_all(self, values: Sequence[tuple[str, bytes]]) -> None:
        """(key, value) of each, each key once; some hundred in one transaction."""
        for part in _parts(values):
            puts = [{"requestPut": {"key": _text(key.encode()), "value": _text(value)}} for key, value in part]
            self._call("txn", {"success": puts})

    def get(self, key: str) -> bytes | None:
        """None where there is none."""
        found = self._call("range", {"key": _text(key.encode())}).get("kvs", [])
        return base64.b64decode(found[0].get("value", "")) if found else None

    def keys(self, prefix: str) -> list[str]:
        """All that begin so."""
        return list(self.revisions(prefix))

    def revisions(self, prefix: str) -> dict[str, int]:
        """Each key that begins so, with the revision of its last write."""
        query = {"key": _text(prefix.encode()), "range_end": _text(_after(prefix)), "keys_only": True}
        pairs = self._call("range", query).get("kvs", [])
        return {base64.b64decode(pair["key"]).decode(): int(pair["mod_revision"]) for pair in pairs}

    def delete(self, key: str) -> None:
        """Whether it was there or not."""
        self._call("deleterange", {"key": _text(key.encode())})

    def delete_all(self, prefix: str) -> None:
        """Every key that begins so."""
        self._call("deleterange", {"key": _text(prefix.encode()), "range_end": _text(_after(prefix))})

    def delete_each(self, keys: Sequence[str]) -> None:
        """These keys, some hundred in one transaction."""
        for at in range(0, len(keys), AT_ONCE):
            deletions = [{"requestDeleteRange": {"key": _text(key.encode())}} for key in keys[at : at + AT_ONCE]]
            self._call("txn", {"success": deletions})

    def _call(self, what: str, body: Any) -> Any:
        self.connection.request("POST", f"/v3/kv/{what}", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with self.connection.getresponse() as answer:
            text = answer.read()
        assert answer.status == 200, f"etcd: {what}: {answer.status} {text[:300]!r}"
        return json.loads(text)


@contextmanager
def store(cluster: Cluster) -> Iterator[Etcd]:
    """The one behind its API server; the connection is closed on leaving."""
    command = [str(word) for word in cluster.named["etcd"].popen.args]  # type: ignore[union-attr]
    url = next(word.removeprefix(URLS) for word in command if word.startswith(URLS))
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    try:
        yield Etcd(connection)
    finally:
        connection.close()


def _parts(values: Sequence[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    part: list[tuple[str, bytes]] = []
    size = 0
    for key, value in values:
        if part and (len(part) == AT_ONCE or size + len(value) > MOST):
            yield part
            part, size = [], 0
        part.append((key, value))
        size += len(value)
    if part:
        yield part


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _after(prefix: str) -> bytes:
    """The first key that no longer begins so."""
    key = prefix.encode()
    return key[:-1] + bytes([key[-1] + 1])
