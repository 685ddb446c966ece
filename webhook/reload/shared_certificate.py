"""The serving certificate that all replicas share (``cluster.certificates``), as a source for the watcher of
certificates.

Until the first one is read, a pair that nobody trusts is served: the port answers, and the replica is not
ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from certs.authority import issue, make_ca
from certs.rotation import Lives
from certs.serving import Serving, serving_of, serving_of_pem
from cluster.background import background
from cluster.client.errors import AccessError
from registration.configurations import FIRST_NAME, NAME
from sources.sources import ClusterSource
from telemetry import log
from webhook.admission.app import ROUTES

if TYPE_CHECKING:
    from cluster.certificates.follower import Pair, SecretFollower
    from cluster.client.api_client import Client

DEFAULT_LIVES = Lives()
AGAIN = 5.0
"""Seconds before credentials that could not be read are read again."""


CaState = tuple[float, bool | None]
"""Unix seconds of the expiry; whether the CA is trusted, None if there is no registration."""


def collect_ca(state: CaState | None) -> Iterator[Metric]:
    """Yield the metrics of the CA, as far as it is known."""
    if state is None:
        return
    yield GaugeMetricFamily("berth_ca_expiry_timestamp_seconds", "When the CA of the serving certificate expires.", state[0])
    text = "1 if the webhook configurations have that CA in their caBundle, 0 if not or if they do not exist."
    yield GaugeMetricFamily("berth_ca_trusted", text, float(bool(state[1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSecret:
    """The Secret of the certificates that all replicas share."""

    namespace: str
    name: str
    source: Literal["ours", "theirs"] = "ours"
    """``theirs``: cert-manager or a person writes it, and Berth only reads."""
    lives: Lives = DEFAULT_LIVES
    """How long Berth's own certificates live."""


class SharedCertificate:
    """Follows a Secret on the event loop, for callers who verify ``names``."""

    ca: Path | None = None

    def __init__(self, source: ClusterSource, secret: CertificateSecret, names: tuple[str, ...]) -> None:
        self._source = source
        self._secret = secret
        self._names = names
        self._origin = Path(f"Secret {secret.namespace}") / secret.name
        self._places = self._origin / "tls.crt", self._origin / "tls.key"
        self._follower: SecretFollower | None = None
        self._access_error = ""
        self._served: Pair | None = None
        self._provisional = False
        """True while a pair is served that nobody trusts."""
        self._was_ready = False
        self.notes: tuple[str, ...] = ()

    def refresh(self, now: datetime) -> Serving | None:
        """Return what is to be served from now on, or None; see ``certs.following``."""
        follower = self._follower
        pair = follower.pair if follower is not None else None
        if follower is not None and pair is not None and pair != self._served:
            serving = serving_of_pem(pair, self._places, follower.now())
            self.notes = (f"{self._origin}: {serving}",)
            self._served = pair
            return serving
        if self._served is None and not self._provisional:
            self._provisional = True
            self.notes = (f"{self._origin} is not read yet; until then a temporary certificate is served that no caller trusts",)
            return serving_of(issue(make_ca(now), self._names, now), self._origin, now)
        return None

    def waiting(self) -> str:
        """Return what callers wait for before this replica can serve them; "" once it was ready.

        Later it stays ready whatever happens to the registration: that no replica is ready would help nobody.
        """
        follower = self._follower
        if self._was_ready:
            return ""
        if follower is None or self._served is None:
            return f"{self._origin}: {self._access_error or (follower.error if follower is not None else '') or 'not read yet'}"
        if follower.trusted is False:
            error = f": {follower.error}" if follower.error else ""
            return f"the webhook configurations {NAME} do not have the CA in their caBundle yet{error}"
        self._was_ready = True
        return ""

    def verifiers_ahead(self) -> float:
        """Return by how many whole seconds the API server's clock is ahead of this node's; 0 while it is not known."""
        return round((self._follower.now() - datetime.now(UTC)).total_seconds()) if self._follower is not None else 0

    def state(self) -> CaState | None:
        """Return when the CA of what is served expires, and whether the registration trusts it; None while
        nothing is known."""
        follower = self._follower
        if follower is None or follower.ca_expires is None:
            return None
        return follower.ca_expires.timestamp(), follower.trusted

    def collect_metrics(self) -> Iterator[Metric]:
        """Yield the metrics of the CA."""
        return collect_ca(self.state())

    @background("certificates")
    async def run(self) -> None:
        """Follow the Secret for ever."""
        await _follow(self._source, "certificates", self._follow_secret, self._reject)

    def _reject(self, error: str) -> None:
        self._access_error = error

    async def _follow_secret(self, client: Client) -> None:
        from cluster.certificates.keeper import Keeper
        from cluster.certificates.reader import SecretReader
        from cluster.certificates.registrations import Registrations
        from cluster.certificates.secret_store import SecretStore

        store = SecretStore(client, self._secret.namespace, self._secret.name)
        registrations = Registrations(client, NAME, log.tell, first=FIRST_NAME)
        self._follower = (
            SecretReader(client, store, registrations, log.tell, overlap=self._secret.lives.overlap)
            if self._secret.source == "theirs"
            else Keeper(client, store, registrations, log.tell, names=self._names, lives=self._secret.lives)
        )
        await self._follower.run()


async def keep_rules(source: ClusterSource, certificate: SharedCertificate) -> None:
    """Keep the rules of the registration in effect (``cluster.webhook_rules``), for ever."""

    async def keep(client: Client) -> None:
        from cluster.webhook_rules import WebhookRules

        await WebhookRules(
            client,
            NAME,
            FIRST_NAME,
            log.tell,
            is_serving=lambda: not certificate.waiting(),
            needs_bundle=lambda: certificate.state() is not None,
            answers=lambda path: path.encode() in ROUTES,
        ).run()

    await _follow(source, "registration", keep, lambda _: None)  # the log has it from those who follow certificates and policies


async def _follow(source: ClusterSource, phase: str, follow: Callable[[Client], Awaitable[None]], reject: Callable[[str], None]) -> None:
    """Follow with a client of the cluster, for ever: what is in effect stays where that fails, and it begins anew.

    ``reject`` is called with the error where the credentials can't be read.
    """
    from cluster.client.api_client import Access, Client  # of Kubernetes, imported late as in ``webhook.serve``

    while True:
        try:
            client = await Client.connect(Access(source.kubeconfig, source.context))
        except AccessError as error:
            reject(str(error))
            await asyncio.sleep(AGAIN)
            continue
        try:
            await follow(client)
        except Exception as error:  # noqa: BLE001 - whatever it was, it must not end the following
            log.write("failed", "error", phase=phase, error=log.trace(error))
            await asyncio.sleep(AGAIN)
        finally:
            await client.close()
