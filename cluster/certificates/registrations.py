"""The ``caBundle`` of our two webhook configurations, by which the API server verifies what is served.

It is written by server-side apply under a field manager of our own, and nothing else is: whoever renders the
configurations leaves the field out, and keeps all others. Where cert-manager is told to inject a bundle, it is
left alone.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from certs.authority import CertificateError
from certs.chain import parse_chain
from certs.rotation import fingerprint
from cluster.certificates.secret_store import decoded
from cluster.client.api_client import APPLY, Client
from cluster.client.errors import Rejected
from cluster.watch.store import Tell
from kube.tree import Raw, map_at, maps_in

MANAGER = "berth-certificates"
GROUP = "/apis/admissionregistration.k8s.io/v1"
KINDS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
FIRST_KIND = "MutatingWebhookConfiguration"
INJECTED = "cert-manager.io/inject-"
"""The start of the annotations by which cert-manager's cainjector writes bundles (cert-manager.io/docs,
concepts/ca-injector)."""
OFTEN, WINDOW, RARELY = 5, 600.0, 60.0
"""After five corrections within ten minutes another manager writes the field too: one correction a minute is
made then, and it is logged, so that two programs do not overwrite each other for ever."""


class Trust(NamedTuple):
    """The CA certificates that callers are to trust."""

    pem: bytes
    fingerprints: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One webhook configuration, as read."""

    kind: str
    value: Raw

    @property
    def name(self) -> str:
        return str(map_at(self.value, "metadata").get("name"))

    @property
    def entries(self) -> list[Raw]:
        """Its webhooks."""
        return [dict(webhook) for webhook in maps_in(self.value.get("webhooks"))]

    @property
    def injected(self) -> bool:
        """True if cert-manager writes its bundle."""
        return any(key.startswith(INJECTED) for key in map_at(self.value, "metadata", "annotations"))

    def trusts(self) -> frozenset[str]:
        """The fingerprints that are in the bundle of every entry."""
        each = [trusted_by(entry) for entry in self.entries]
        return frozenset.intersection(*each) if each else frozenset()

    def others(self) -> list[str]:
        """The field managers besides ours that own a ``caBundle``, sorted."""
        return sorted({name for name, fields in self._managed() if name != MANAGER and _owns(fields, "f:caBundle")})

    def ours(self) -> bool:
        """Return whether our field manager owns a ``caBundle``."""
        return any(name == MANAGER for name, _ in self._managed())

    def _managed(self) -> Iterator[tuple[str, object]]:
        for fields in maps_in(map_at(self.value, "metadata").get("managedFields")):
            yield str(fields.get("manager")), fields.get("fieldsV1")


def trusted_by(entry: Raw) -> frozenset[str]:
    """Return the fingerprints of the CA certificates in the bundle of one webhook."""
    pem = decoded(map_at(entry, "clientConfig").get("caBundle"))
    try:
        return frozenset(map(fingerprint, parse_chain(pem))) if pem else frozenset()
    except CertificateError:
        return frozenset()


class Registrations:
    """The two configurations of one name, and a mutating one that is called before others, if there is one. All calls
    raise Rejected and Unreachable."""

    def __init__(self, client: Client, name: str, tell: Tell, *, first: str = "") -> None:
        self._client = client
        self._tell = tell
        self._corrected: dict[str, deque[float]] = {}
        self._contested: dict[str, float] = {}
        self._first = first
        self.name = name

    async def read(self) -> list[Configuration]:
        """Return those that there are. The first, which few have, may be out of reach too."""
        found = [Configuration(kind=kind, value=value) for kind in KINDS if (value := await self._read(kind, self.name)) is not None]
        value = await self._read(FIRST_KIND, self._first, forbidden=True) if self._first else None
        return found if value is None else [*found, Configuration(kind=FIRST_KIND, value=value)]

    async def publish(self, found: list[Configuration], trust: Trust, now: float) -> None:
        """Write the bundle wherever it is not what callers are to trust. ``now``: monotonic seconds."""
        for one in found:
            trusted = [trusted_by(entry) for entry in one.entries]
            lacks = any(not trust.fingerprints <= prints for prints in trusted)
            if not trusted or one.injected or not (lacks or (one.ours() and any(prints != trust.fingerprints for prints in trusted))):
                continue
            if one.ours() and lacks and self._is_contested(one, now):
                continue
            await self._trust(one, trust)

    def _is_contested(self, one: Configuration, now: float) -> bool:
        """Count a correction; return whether it has to wait."""
        place = f"{one.kind}/{one.name}"
        times = self._corrected.setdefault(place, deque(maxlen=OFTEN))
        often = len(times) == OFTEN and now - times[0] < WINDOW
        if often and now - self._contested.get(place, -WINDOW) >= WINDOW:
            self._contested[place] = now
            error = (
                f"another program keeps overwriting its caBundle ({', '.join(one.others()) or 'its name is not known'}); stop that program"
            )
            self._tell("ca_bundle_contested", configuration=place, error=error)
        if often and now - times[-1] < RARELY:
            return True
        times.append(now)
        return False

    async def _read(self, kind: str, name: str, *, forbidden: bool = False) -> Raw | None:
        path = f"{GROUP}/{KINDS[kind]}/{name}"
        reply = await self._client.call("GET", path)
        if reply.status == 404 or (forbidden and reply.status == 403):
            return None
        return reply.object(f"GET {path}")

    async def apply(self, one: Configuration, manager: str, metadata: Raw, webhooks: list[Raw]) -> bool:
        """Apply fields of its webhooks as a field manager. Return False if it is another one by now than ``metadata`` says."""
        path = f"{GROUP}/{KINDS[one.kind]}/{one.name}"
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": one.kind, "metadata": metadata, "webhooks": webhooks}
        query = {"fieldManager": manager, "force": "true"}
        reply = await self._client.call("PATCH", path, body=body, content=APPLY, query=query)
        if not reply.ok and not (reply.status == 409 and "resourceVersion" in metadata):
            raise Rejected(f"PATCH {path}", reply)
        return reply.ok

    async def _trust(self, one: Configuration, trust: Trust) -> None:
        bundle = base64.b64encode(trust.pem).decode()
        webhooks = [{"name": entry.get("name"), "clientConfig": {"caBundle": bundle}} for entry in one.entries]
        await self.apply(one, MANAGER, {"name": one.name}, webhooks)
        self._tell("ca_bundle_written", configuration=f"{one.kind}/{one.name}", authorities=len(trust.fingerprints))


def _owns(fields: object, name: str) -> bool:
    """Return whether a field of this name is in a set of managed fields (FieldsV1), at any depth."""
    return isinstance(fields, dict) and (name in fields or any(_owns(value, name) for value in fields.values()))
