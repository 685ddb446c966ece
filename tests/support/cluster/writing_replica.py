"""A replica that writes whenever it holds the Lease, again and again: to be stopped, killed and cut off in tests.

    python -m tests.support.cluster.writing_replica LEASE_KUBECONFIG KUBECONFIG HOLDER PACE PAUSE

Two ways to the API server, so that one can be cut while the other lasts. It ends on SIGTERM, and lets go.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import Any

from cluster.client.api_client import Access, Client, Unreachable
from cluster.status.leader_election import Lease

LEASE, WRITTEN = "berth-test", "written"
PATH = f"/api/v1/namespaces/default/configmaps/{WRITTEN}"


def print_event(event: str, /, **fields: Any) -> None:
    """On standard output."""
    print(event, fields, flush=True)


async def write(client: Client, lease: Lease, pause: float) -> None:
    """For ever, with so many seconds between two writes; each write carries who writes, and the version that it was decided on."""
    version = ""
    while True:
        await asyncio.sleep(pause)
        if not lease.held:
            version = ""
            continue
        try:
            if not version:
                version = (await client.call("GET", PATH)).body["metadata"]["resourceVersion"]
            if lease.held:
                change = {"metadata": {"resourceVersion": version}, "data": {"holder": lease.holder, "version": version}}
                reply = await client.call("PATCH", PATH, body=change, content="application/merge-patch+json", seconds=lease.left)
                version = reply.body["metadata"]["resourceVersion"] if reply.ok else ""
        except Unreachable:
            version = ""


async def main(lease_kubeconfig: str, kubeconfig: str, holder: str, pace: float, pause: float) -> None:
    """Until SIGTERM."""
    lease_client, client = [await Client.connect(Access(path)) for path in (lease_kubeconfig, kubeconfig)]
    lease = Lease(lease_client, name=LEASE, namespace="default", holder=holder, tell=print_event, pace=pace)
    tasks = [asyncio.create_task(write(client, lease, pause)), asyncio.create_task(lease.run())]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    for task in tasks:  # what writes first
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    for one in (lease_client, client):
        await one.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5])))
