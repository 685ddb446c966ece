"""Starting a cluster: its files, its processes in the order in which they need each other, and waiting until each is ready."""

from __future__ import annotations

import http.client
import secrets
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.testcluster import programs
from tests.testcluster.controlplane import kubeconfig
from tests.testcluster.controlplane.api import Api, Raw, Reply
from tests.testcluster.controlplane.cluster import ENDS_AFTER, RUNS_FOR, Cluster, Options
from tests.testcluster.controlplane.kwok_stages import wait_until_played
from tests.testcluster.controlplane.processes import ClusterFailed, Process, Processes, free_port, watched

HOST = "127.0.0.1"
ATTEMPTS = 3
"""A port that was free may be taken before the process binds it."""
QPS = ("--kube-api-qps=5000", "--kube-api-burst=10000")
"""Their defaults, 50 and 20 calls a second, would be all that a test of 2,000 pods measures."""
PLAYED = ["--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"]
"""Where kwok plays all pods nobody mounts their tokens, and a new namespace has none for a moment; and nobody calls the Service kubernetes,
for which from 1.37 on no address will do that is loopback."""
BESIDE_REAL_NODES = ["--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--cidr=198.19.192.1/18"]
"""kwok keeps to nodes with its annotation, and gives their pods no addresses of real ones or of Services."""
AUDIT: Raw = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch"], "resources": [{"group": "", "resources": ["pods"]}]},
        {"level": "None"},
    ],
}
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
"""what the API server creates by itself (pkg/controlplane/controller/systemnamespaces)"""
Start = Callable[[], "Part"]
started: list[Path] = []
"""The folder of each control plane that this process started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A process to be started, on a port that was free."""

    port: int
    ready: Callable[[], bool]
    command: list[str]


@contextmanager
def running(options: Options | None = None, *, keep: Callable[[], bool] = lambda: False) -> Iterator[Cluster]:
    """Ready; ended on leaving. Raises NoProgram and BuildFailed for what is not there, ClusterFailed for what does not start."""
    chosen = options or Options()
    for name in ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kwok"):  # before anything is started
        programs.path(name, release=chosen.release)
    with watched(keep=keep) as processes:
        cluster = Starting(processes=processes, options=chosen).cluster()
        try:
            yield cluster
        finally:
            cluster.api.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """A cluster on its way up."""

    processes: Processes
    options: Options
    port: Callable[[], int] = lambda: free_port()
    """that of the next part"""

    @property
    def folder(self) -> Path:
        return self.processes.folder

    def cluster(self) -> Cluster:
        """All parts, in the order in which they need each other."""
        cluster = self.store()
        try:
            self.add_controllers(cluster)
        except BaseException:
            cluster.api.close()
            raise
        return cluster

    def store(self) -> Cluster:
        """etcd and the API server alone, with what the API server creates at its start."""
        started.append(self.folder)
        token = secrets.token_urlsafe(16)
        self._write_files(token)
        named: dict[str, Process] = {}
        named["etcd"], etcd = self._started("etcd", self._etcd)
        named["kube-apiserver"], port = self._started("kube-apiserver", lambda: self._apiserver(etcd))
        api = Api(host=HOST, port=port, token=token, ca=self.folder / "certs" / "apiserver.crt")
        try:
            for name in NAMESPACES:
                self.processes.wait_for(lambda name=name: api.get("v1", "Namespace", name), f"the namespace {name}")  # type: ignore[misc]
        except BaseException:
            api.close()
            raise
        return Cluster(processes=self.processes, api=api, kubeconfig=self._kubeconfig(api), named=named)

    def add_controllers(self, cluster: Cluster) -> None:
        """Start the scheduler, the controllers and, where the options say so, kwok. Raises ClusterFailed."""
        for name in ("kube-scheduler", "kube-controller-manager"):
            cluster.named[name], _ = self._started(name, lambda name=name: self._controller(name, cluster.kubeconfig))  # type: ignore[misc]
        if self.options.kubelets:
            self._apply_stages(cluster.api)
            cluster.named["kwok"], _ = self._started("kwok", lambda: self._kwok(cluster.kubeconfig))
            wait_until_played(cluster.api, self.processes, cluster.named["kwok"])

    def _started(self, name: str, start: Start) -> tuple[Process, int]:
        """The process and its port, once it is ready; started anew on another port where its own was taken meanwhile."""
        for attempt in range(ATTEMPTS):
            part = start()
            process = self.processes.start(name, part.command)
            try:
                self.processes.wait_for(part.ready, f"{name} to be ready; its log is {process.log}")
            except ClusterFailed:
                if "address already in use" in process.log.read_text(errors="replace") and attempt + 1 < ATTEMPTS:
                    self.processes.end(process)
                    process.log.rename(process.log.with_suffix(f".{attempt}.log"))
                    continue
                raise
            return process, part.port
        raise AssertionError("the last attempt returns or raises")

    def _program(self, name: str) -> str:
        return str(programs.path(name, release=self.options.release))

    def _etcd(self) -> Part:
        port, peer = self.port(), self.port()
        client_url, peer_url = f"http://{HOST}:{port}", f"http://{HOST}:{peer}"
        urls = [f"--listen-client-urls={client_url}", f"--advertise-client-urls={client_url}"]
        urls += [f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}", f"--initial-cluster=default={peer_url}"]
        command = [self._program("etcd"), f"--data-dir={self.folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn", *urls]
        return Part(port=port, ready=lambda: http_ok(f"{client_url}/health"), command=command)

    def _apiserver(self, etcd: int) -> Part:
        port, keys = self.port(), self.folder / "keys"
        flags = [
            f"--etcd-servers=http://{HOST}:{etcd}",
            f"--secure-port={port}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--cert-dir={self.folder / 'certs'}",
            f"--service-account-key-file={keys / 'sa.pub'}",
            f"--service-account-signing-key-file={keys / 'sa.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--token-auth-file={keys / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            f"--audit-policy-file={self.folder / 'audit.yaml'}",
            f"--audit-log-path={self.folder / 'audit.log'}",
            "--profiling=false",
            *([] if self.options.real_nodes else PLAYED),
            *self.options.apiserver,
        ]
        command = [self._program("kube-apiserver"), *flags]
        return Part(port=port, ready=lambda: http_ok(f"https://{HOST}:{port}/readyz"), command=command)

    def _controller(self, name: str, file: Path) -> Part:
        port = self.port()
        files = [f"--{flag}={file}" for flag in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")]
        flags = [
            *files,
            *QPS,
            "--leader-elect=false",
            f"--bind-address={HOST}",
            f"--secure-port={port}",
            f"--cert-dir={self.folder / name}",
        ]
        if name == "kube-controller-manager":
            flags += [f"--service-account-private-key-file={self.folder / 'keys' / 'sa.key'}", f"--controllers={self.options.controllers}"]
            flags += ["--use-service-account-credentials"]  # each controller is known by name, as in the clusters of kubeadm and others
            flags += [f"--root-ca-file={self.folder / 'certs' / 'apiserver.crt'}"] if self.options.real_nodes else []
            flags += self.options.manager
            flags += ["--concurrent-job-syncs=20", "--concurrent-namespace-syncs=20", "--concurrent-gc-syncs=40"]
        return Part(port=port, ready=lambda: http_ok(f"https://{HOST}:{port}/healthz"), command=[self._program(name), *flags])

    def _kwok(self, file: Path) -> Part:
        port = self.port()
        flags = [f"--kubeconfig={file}", f"--server-address={HOST}:{port}"]
        flags += BESIDE_REAL_NODES if self.options.real_nodes else ["--manage-all-nodes"]
        flags += ["--node-lease-duration-seconds=40", "--enable-crds=Stage"]
        return Part(port=port, ready=lambda: http_ok(f"http://{HOST}:{port}/healthz"), command=[str(programs.path("kwok")), *flags])

    def _apply_stages(self, api: Api) -> None:
        """What kwok does with nodes and pods."""
        folder = programs.manifests("kwok", "kustomize/crd/bases", "kustomize/stage") / "kustomize"
        apply_crds(api, [folder / "crd" / "bases" / "kwok.x-k8s.io_stages.yaml"], self.processes)
        for stage in ("node/fast", "node/heartbeat-with-lease", "pod/fast"):
            for file in sorted((folder / "stage" / stage).glob("*.yaml")):
                for value in yaml.safe_load_all(file.read_text()):
                    if value["kind"] == "Stage":
                        _must(api.apply(self._timed(value)), f"stage {value['metadata']['name']}")

    def _timed(self, stage: Raw) -> Raw:
        """A Job's pod runs for a while, or nobody would see it run; one that is deleted ends as late as its annotation says."""
        timed = {"pod-complete": (int(self.options.job_seconds * 1000), RUNS_FOR), "pod-delete": (0, ENDS_AFTER)}
        if (name := stage["metadata"]["name"]) in timed:
            milliseconds, annotation = timed[name]
            stage["spec"]["delay"] = {
                "durationMilliseconds": milliseconds,
                "durationFrom": {"expressionFrom": f'.metadata.annotations["{annotation}"]'},
            }
        return stage

    def _write_files(self, token: str) -> None:
        """What kube-apiserver reads at its start."""
        keys = self.folder / "keys"
        keys.mkdir(mode=0o700)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (keys / "sa.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (keys / "sa.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        tokens = ((token, "admin", "system:masters"), *self.options.tokens)
        (keys / "tokens.csv").write_text("".join(f'{token},{user},{user},"{group}"\n' for token, user, group in tokens))
        (self.folder / "audit.yaml").write_text(yaml.safe_dump(AUDIT))

    def _kubeconfig(self, api: Api) -> Path:
        """For kubectl and every component: an administrator's."""
        return kubeconfig.write(self.folder / "kubeconfig", f"https://{HOST}:{api.port}", api.ca, api.token)


def apply_crds(api: Api, files: Sequence[Path], processes: Processes) -> None:
    """Applied, and served from now on. Raises ClusterFailed."""
    values = [value for file in files for value in yaml.safe_load_all(file.read_text()) if value]
    for value in values:
        _must(api.apply(value), f"CRD {value['metadata']['name']}")
    for value in values:
        spec = value["spec"]
        for version in spec["versions"]:
            kind = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
            processes.wait_for(lambda kind=kind: _served(api, *kind), f"{' '.join(kind)} to be served")  # type: ignore[misc]


def _served(api: Api, api_version: str, kind: str) -> bool:
    """Discovery follows a moment after the CRD is established."""
    try:
        return api.call("GET", api.kind(api_version, kind).path(None), limit="1").ok
    except LookupError:
        return False


def _must(reply: Reply, what: str) -> None:
    if not reply.ok:
        raise ClusterFailed(f"{what} was rejected: {reply.status} {reply.message}")


def http_ok(url: str) -> bool:
    """Whether a GET of a health endpoint of this machine answers 200. Its certificate is self-signed and not looked at."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(parts.hostname, parts.port, context=context, timeout=5)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=5)
    try:
        connection.request("GET", parts.path)
        with connection.getresponse() as answer:
            return answer.status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
