"""The certificates that Berth makes itself: every replica keeps them, and any may write.

The Secret is the truth. A replica reads it, works out what is due (``certs.rotation``), and writes the result
under the resourceVersion that it read; then it publishes the CA certificates. What a replica serves was
always stored before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from certs.rotation import NOTHING, Asked, Lives, Material, due, merge_material
from certs.secret import from_data, is_ours, to_data
from cluster.certificates.follower import SecretFollower
from cluster.certificates.registrations import Configuration, Registrations, Trust
from cluster.certificates.secret_store import SecretStore
from cluster.client.api_client import Client
from cluster.client.errors import Failure
from cluster.watch.store import Tell

MOST_CHANGES = 100
"""The most changes of one look. Each old CA takes one; more than that can only be a fault."""


class Keeper(SecretFollower):
    """Keeps the certificates of one Secret."""

    def __init__(
        self, client: Client, store: SecretStore, registrations: Registrations, tell: Tell, *, names: Sequence[str], lives: Lives
    ) -> None:
        super().__init__(client, store, registrations, tell)
        self._names = names
        self._lives = lives
        self.material: Material = NOTHING
        """What is stored, as far as this replica knows."""

    async def look(self) -> bool:
        """Read, carry out what is due, and publish; return whether to look again soon. Raises Failure."""
        stored, configurations = await self.read()
        if not is_ours(stored.data) and self.material is NOTHING:
            name = f"the Secret {self._store.namespace}/{self._store.name}"
            raise Failure(
                f"{name} was not created by Berth; use --cert-source theirs to serve its certificate, or another name in --cert-secret"
            )
        material, wrong = from_data(stored.data)
        whole = material if not wrong and material.leaf is not None else merge_material(self.material, material)
        if wrong and self._errors.is_new(" ".join(wrong)):
            self._tell("certificates_damaged", error="; ".join(wrong), secret=f"{self._store.namespace}/{self._store.name}")
        new, reasons = self._due(whole, configurations, stored.request)
        if new != material and not await self._store.write(stored, to_data(new)):
            return True
        if new != material and not reasons:
            lost = "it was deleted" if stored.value is None else "some of them were missing"
            reasons = [f"wrote the same certificates to the Secret {self._store.namespace}/{self._store.name} again: {lost}"]
        for reason in reasons:
            self._tell("certificates", note=reason)
        await self._take(new, configurations)
        return bool(reasons)

    async def _take(self, material: Material, configurations: list[Configuration]) -> None:
        """Serve what is stored, and publish its CA certificates."""
        leaf, issuer = material.leaf, material.issuer()
        self.material = material
        if leaf is not None and issuer is not None:
            self.pair, self.ca_expires = (leaf.certificate_pem, leaf.key_pem), issuer.certificate.not_valid_after_utc
        await self._registrations.publish(configurations, Trust(material.bundle, material.fingerprints), time.monotonic())
        if not configurations:
            self.trusted = None
        else:
            self.trusted = issuer is not None and all(issuer.fingerprint in one.trusts() for one in configurations)

    def _due(self, material: Material, configurations: list[Configuration], request: str) -> tuple[Material, list[str]]:
        trusted = frozenset.intersection(*(one.trusts() for one in configurations)) if configurations else None
        word = request.partition(" ")[0]
        asked: Asked | None = "ca" if word == "ca" else "leaf" if word == "leaf" else None
        reasons: list[str] = []
        while change := due(material, self._names, self.now(), self._lives, trusted=trusted, asked=asked, request=request):
            material = change.material
            reasons.append(change.reason)
            if len(reasons) == MOST_CHANGES:
                break  # these are stored, and the rest follows at the next look
        return material, reasons
