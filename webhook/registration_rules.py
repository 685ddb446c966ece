"""The task by which a replica puts the registration into effect (``cluster.webhook_rules``)."""

from __future__ import annotations

import asyncio
from typing import Any

from cluster.client.errors import AccessError
from registration.configurations import FIRST_NAME, NAME
from sources.sources import ClusterSource
from telemetry import log
from webhook.admission.app import ROUTES
from webhook.reload.shared_certificate import AGAIN, SharedCertificate


async def keep_rules(source: ClusterSource, certificate: SharedCertificate) -> None:
    """Keep the rules of the registration in effect, for ever."""
    from cluster.client.api_client import Access, Client  # of Kubernetes, imported late as in ``webhook.serve``
    from cluster.webhook_rules import WebhookRules

    while True:
        try:
            client = await Client.connect(Access(source.kubeconfig, source.context))
        except AccessError:  # the log has it from those who follow certificates and policies
            await asyncio.sleep(AGAIN)
            continue
        try:
            await WebhookRules(
                client,
                NAME,
                FIRST_NAME,
                _log,
                is_serving=lambda: not certificate.waiting(),
                needs_bundle=lambda: certificate.state() is not None,
                answers=lambda path: path.encode() in ROUTES,
            ).run()
        except Exception as error:  # noqa: BLE001 - what is in effect stays, and the task begins anew
            log.write("failed", "error", phase="registration", error=log.trace(error))
            await asyncio.sleep(AGAIN)
        finally:
            await client.close()


def _log(event: str, /, **fields: Any) -> None:
    log.write(event, "warning" if "error" in fields else "info", **fields)
