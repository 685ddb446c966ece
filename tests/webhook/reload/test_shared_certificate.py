"""The task that follows the certificates' Secret, and what runs beside it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sources.sources import ClusterSource
from webhook.reload import shared_certificate
from webhook.reload.shared_certificate import CertificateSecret, SharedCertificate

SOURCE = ClusterSource(kubeconfig=None, context=None, watch=60, lease=("berth-system", "berth"))


class FakeClient:
    """A client that notes that it is closed."""

    def __init__(self) -> None:
        self.is_closed = False

    async def close(self) -> None:
        """Note it."""
        self.is_closed = True


class FailingFollower:
    """A follower that fails at once."""

    async def run(self) -> None:
        """Fail."""
        await asyncio.sleep(0)
        raise ValueError("unforeseen")


def test_what_runs_beside_shares_the_client_and_begins_anew_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where following fails, the client is closed, what ran beside is cancelled, and both begin anew."""
    clients: list[FakeClient] = []
    lent: list[Any] = []
    ends: list[bool] = []

    async def connect(access: object) -> FakeClient:
        clients.append(FakeClient())
        return clients[-1]

    async def beside(client: Any) -> None:
        lent.append(client)
        try:
            await asyncio.sleep(60)
        finally:
            ends.append(True)

    async def run_for_a_moment() -> None:
        certificate = SharedCertificate(SOURCE, CertificateSecret(namespace="berth-system", name="certificates"), ("berth.svc",))
        monkeypatch.setattr(certificate, "_made", lambda client: FailingFollower())
        task = asyncio.create_task(certificate.run(beside))
        while len(lent) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)

    monkeypatch.setattr(shared_certificate, "AGAIN", 0.001)
    monkeypatch.setattr("cluster.client.api_client.Client.connect", connect)
    asyncio.run(asyncio.wait_for(run_for_a_moment(), 10))
    assert lent == clients
    assert all(client.is_closed for client in clients)
    assert len(ends) == len(lent)
