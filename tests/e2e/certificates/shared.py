"""Replicas that share their certificates, behind one address, and a load of GPU pods created through the API server."""

from __future__ import annotations

import base64
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cryptography import x509

from certs.authority import KeyPair
from certs.rotation import Material
from registration.configurations import NAME
from tests.support.cluster.faulty_proxy import Proxy
from tests.support.counts import PROVE
from tests.testcluster.addons import shared_secret
from tests.testcluster.addons.berth import COMMAND, PROBE, ROOT, Berth, listening
from tests.testcluster.addons.installed import NAMESPACE
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster

SECRET = shared_secret.NAME
SERVICE = "berth.berth-system.svc"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
REGISTRATION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A cluster with the registration for one address, behind which replicas come and go."""

    cluster: Cluster
    kubeconfig: Path

    def started(self, name: str, *options: str, source: Path = ROOT) -> Berth:
        """A replica that shares the Secret; it may not be ready yet. ``source``: where its code is."""
        where = ["--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--lame-duck", "0"]
        shared = ["--cert-secret", f"{NAMESPACE}/{SECRET}", "--names", SERVICE]
        command = [*COMMAND, "serve", "--kubeconfig", str(self.kubeconfig), *where, *shared, *options]
        process = self.cluster.processes.start(f"berth-{name}", command, {"PYTHONPATH": str(source)})
        return listening(self.cluster, name, process)

    def put(self, ca: KeyPair, leaf: KeyPair) -> None:
        """The Secret as cert-manager writes it."""
        data = {"ca.crt": ca.certificate_pem, "tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        reply = self.cluster.api.apply({**shared_secret.SECRET, "data": encoded})
        assert reply.ok, reply.message

    def ready(self, *replicas: Berth) -> None:
        """Wait until they are."""
        for one in replicas:
            self.cluster.wait_for(lambda one=one: one.page("/readyz").status == 200, f"{one.name} to be ready")  # type: ignore[misc]

    def secret(self) -> Raw | None:
        """As it is stored."""
        return shared_secret.stored(self.cluster.api)

    def material(self) -> Material:
        """What it holds; nothing in it is damaged."""
        return shared_secret.material(self.cluster.api)

    def change_secret(self, data: dict[str, bytes]) -> None:
        """As with kubectl patch."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.cluster.api.patch(shared_secret.SECRET, {"data": encoded})

    def rotate(self, what: str, number: int) -> None:
        """As `berth certs rotate` does."""
        shared_secret.rotate(self.cluster.api, what, number)

    def configurations(self) -> list[Raw]:
        """Both."""
        found = [self.cluster.api.get(REGISTRATION, kind, NAME) for kind in KINDS]
        return [one for one in found if one is not None]

    def bundles(self) -> set[str]:
        """The different ones in all entries."""
        return {entry["clientConfig"].get("caBundle", "") for one in self.configurations() for entry in one["webhooks"]}

    def created(self, namespace: str) -> Reply:
        """A GPU pod, by a dry run."""
        return self.cluster.api.try_create(PROBE, namespace, dry_run=True)


def register(cluster: Cluster, url: str) -> None:
    """As a chart does: without a CA."""
    command = [*COMMAND, "webhooks", "--url", url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)})
    for value in yaml.safe_load_all(done.stdout):
        if value:
            reply = cluster.api.call(
                "PATCH", cluster.api.path_of(value), value, content="application/apply-patch+yaml", fieldManager="helm"
            )
            assert reply.ok, reply.message


@contextmanager
def registered(installation: Installation, replica: Berth) -> Iterator[Proxy]:
    """The API server calls this replica, by one address, which may be led to others; in the end nobody."""
    host, _, port = replica.url.removeprefix("https://").rpartition(":")
    with Proxy(host, int(port)) as proxy:
        register(installation.cluster, f"https://127.0.0.1:{proxy.port}")
        try:
            yield proxy
        finally:
            for one in installation.configurations():
                installation.cluster.api.delete(one)


def berth(installation: Installation, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, as an administrator types it."""
    command = [*COMMAND, *words, "--kubeconfig", str(installation.cluster.kubeconfig)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})


def served(replica: Berth) -> x509.Certificate:
    """The certificate that a new connection gets."""
    host, _, port = replica.url.removeprefix("https://").rpartition(":")
    return x509.load_pem_x509_certificate(ssl.get_server_certificate((host, int(port))).encode())


@dataclass(slots=True)
class Creations:
    """Pods created one after the other, by several callers."""

    installation: Installation
    namespace: str
    replies: list[Reply] = field(default_factory=list)

    @property
    def failed(self) -> list[str]:
        return [reply.message for reply in self.replies if not reply.ok]


@contextmanager
def creating(installation: Installation, namespace: str, callers: int = 4) -> Iterator[Creations]:
    """Until the end of the block."""
    made, ended = Creations(installation, namespace), threading.Event()

    def create() -> None:
        while not ended.is_set():
            made.replies.append(installation.created(namespace))
            time.sleep(0.01 if PROVE else 0.2)

    threads: Sequence[threading.Thread] = [threading.Thread(target=create, daemon=True) for _ in range(callers)]
    for one in threads:
        one.start()
    try:
        yield made
    finally:
        ended.set()
        for one in threads:
            one.join()
