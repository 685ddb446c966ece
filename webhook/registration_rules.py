"""The task by which a replica puts the registration into effect (``cluster.webhook_rules``)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cluster.background import background
from registration.configurations import FIRST_NAME, NAME
from telemetry import log
from webhook.admission.app import ROUTES
from webhook.reload.shared_certificate import AGAIN, SharedCertificate

if TYPE_CHECKING:
    from cluster.client.api_client import Client


@background("registration rules")
async def keep_rules(client: Client, certificate: SharedCertificate) -> None:
    """Keep the rules of the registration in effect, for ever."""
    from cluster.webhook_rules import WebhookRules  # imports aiohttp late, as ``webhook.serve`` does

    while True:
        try:
            await WebhookRules(
                client,
                NAME,
                FIRST_NAME,
                log.log_event,
                is_serving=lambda: not certificate.waiting(),
                needs_bundle=lambda: certificate.state() is not None,
                answers=lambda path: path.encode() in ROUTES,
            ).run()
        except Exception as error:  # noqa: BLE001 - what is in effect stays, and the task begins anew
            log.write("failed", "error", phase="registration", error=log.trace(error))
            await asyncio.sleep(AGAIN)
