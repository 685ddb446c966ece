"""`berth console --in-cluster` as a process: its service account is files of a folder, as a kubelet mounts them.

    python -P -m tests.support.console.in_cluster FOLDER PORT REVIEWED OPTION...

PORT: of the API server on 127.0.0.1; REVIEWED: seconds after which tokens and rights are asked for again.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from cli.main import parser
from cli.options import sources_from
from cluster.client.access import Access
from console import serve
from console.access import rights, sign_in
from tests.support.cluster.service_account_files import mount
from tests.support.console.browser import Browser
from tests.testcluster.addons.berth import environment, logged
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process

NEW = 0.0
"""Everything is asked for again with every page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """One that answers."""

    process: Process
    port: int
    ca: Path

    def browser(self) -> Browser:
        """A browser without cookies."""
        return Browser(self.port, self.ca)

    def events(self, name: str) -> list[Raw]:
        """The lines of its log with this event."""
        return [event for event in logged(self.process.log, self.process.begins) if event["event"] == name]


def start(cluster: Cluster, name: str, token: str, *options: str, reviewed: float = 60.0) -> Console:
    """Start one with the token of a service account, and wait until it has read the cluster."""
    folder = cluster.folder / f"console-{name}"
    folder.mkdir()
    mount(folder, cluster, cluster.api.port, token)
    command = [sys.executable, "-P", "-m", "tests.support.console.in_cluster", str(folder), str(cluster.api.port), str(reviewed)]
    where = ["--listen=127.0.0.1:0", f"--self-signed={folder / 'tls'}", "--every=0.2"]
    process = cluster.processes.start(f"console-{name}", [*command, *where, *options], environment())

    def listening() -> Raw | None:
        process.check()
        return next((event for event in logged(process.log, process.begins) if event["event"] == "listening"), None)

    at = cluster.wait_for(listening, "the console to listen")["listen"]
    found = Console(process=process, port=int(at.rpartition(":")[2]), ca=folder / "tls" / "ca.crt")
    cluster.wait_for(lambda: found.browser().get("/readyz").status == 200, "the console to have read the cluster")
    return found


def main(folder: str, port: str, reviewed: str, *words: str) -> int:
    """Serve."""
    args = parser(["console"]).parse_args(["console", "--in-cluster", *words])
    sign_in.AGAIN = rights.LASTS = float(reviewed)
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
    return serve.run(args, sources_from(args), print, Access(None, mounted=Path(folder), environment=environment))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
