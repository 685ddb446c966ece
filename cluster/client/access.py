"""The API server's address and the credentials for it: from a kubeconfig, or from a pod's service account.

They are read by the official client's loaders, which support exec plugins, token files and every form of
certificate.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import load_kube_config
from kubernetes.aio.config.incluster_config import InClusterConfigLoader

from cluster.client.errors import SHOWN, AccessError
from cluster.client.proxies import proxy_of

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which the kubelet mounts a pod's token, CA and namespace (ServiceAccount admission, and
client-go's InClusterConfig)."""
LOADING = 30.0
"""Timeout in seconds for an exec plugin: those of clouds ask a token service, which takes a second or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The address, credentials and TLS settings of calls."""

    server: str
    """https://HOST:PORT, followed by the path of a proxy such as Rancher's if there is one; no slash at its
    end."""
    authorization: str | None
    """The value of the Authorization header; None for a client certificate, or for anonymous calls."""
    context: ssl.SSLContext
    server_name: str | None
    proxy: str | None
    namespace: str
    identity: bytes
    """A hash of everything but the token: connections made under a different one can't be reused."""


@dataclass(frozen=True, slots=True)
class Access:
    """A source of credentials.

    ``kubeconfig``: a path, or several as in KUBECONFIG; None selects the pod's own service account.
    ``context``: None selects the current one. ``mounted``: the folder of a pod's token, ca.crt and namespace.
    """

    kubeconfig: str | None
    context: str | None = None
    mounted: Path = MOUNTED
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def in_cluster(self) -> bool:
        return self.kubeconfig is None

    async def load(self) -> Loaded:
        """Read address and credentials again. Raises AccessError."""
        try:
            async with asyncio.timeout(LOADING):
                return self._of_pod() if self.kubeconfig is None else await self._of_file(self.kubeconfig)
        except AccessError:
            raise
        except TimeoutError as error:
            raise AccessError(f"{self._named}: its credentials were not there after {LOADING:.0f} s; try {self._try}") from error
        except Exception as error:  # the loaders raise any exception on a malformed file
            reason = " ".join(str(error).split())[:SHOWN]
            raise AccessError(f"{self._named} can't be used: {type(error).__name__}: {reason}; try {self._try}") from error

    def token(self) -> str:
        """Read a pod's token again, as the kubelet replaces it before it expires, and return the
        Authorization header.

        Raises OSError or ValueError.
        """
        token = (self.mounted / "token").read_text().strip()
        if not token:
            raise ValueError(f"{self.mounted / 'token'} is empty")
        return f"Bearer {token}"

    def _of_pod(self) -> Loaded:
        configuration = _configuration()
        loader = InClusterConfigLoader(
            token_filename=str(self.mounted / "token"),
            cert_filename=str(self.mounted / "ca.crt"),
            try_refresh_token=False,
            environ=self.environment,
        )
        loader.load_and_set(configuration)
        return _loaded(configuration, self.token(), self._own_namespace())

    def _own_namespace(self) -> str:
        try:
            return (self.mounted / "namespace").read_text().strip() or "default"
        except OSError:
            return "default"

    async def _of_file(self, path: str) -> Loaded:
        if not any(Path(one).expanduser().is_file() for one in path.split(os.pathsep) if one):
            raise AccessError(f"there is no kubeconfig {path}; write --kubeconfig FILE, as kubectl has it: echo $KUBECONFIG")
        configuration = _configuration()
        loader = await load_kube_config(path, self.context, configuration, persist_config=False)
        context: dict[str, Any] = loader.current_context["context"]
        authorization = configuration.api_key.get("BearerToken")
        if authorization is None and configuration.cert_file is None and configuration.host.startswith("https:"):
            raise AccessError(f"{self._named} gives no token and no client certificate; try {self._try}")
        return _loaded(configuration, authorization, context.get("namespace") or "default")

    @property
    def _named(self) -> str:
        if self.kubeconfig is None:
            return "the service account of this pod"
        return f"kubeconfig {self.kubeconfig}" + (f", context {self.context}" if self.context else "")

    @property
    def _try(self) -> str:
        if self.kubeconfig is None:
            return "--kubeconfig FILE outside a cluster; in one, automountServiceAccountToken: true"
        return f"kubectl --kubeconfig {self.kubeconfig} {f'--context {self.context} ' if self.context else ''}get namespaces"


def _configuration() -> Any:
    return Configuration()


def _loaded(configuration: Any, authorization: str | None, namespace: str) -> Loaded:
    return Loaded(
        server=configuration.host.rstrip("/"),
        authorization=" ".join(authorization.split()) if authorization else None,
        context=RESTClientObject(configuration).ssl_context,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy or proxy_of(configuration.host),
        namespace=namespace,
        identity=_identity(configuration),
    )


def _identity(configuration: Any) -> bytes:
    """Return the hash for ``Loaded.identity``. Certificates count by content, as their files are renewed in
    place."""
    found = hashlib.sha256(
        repr((configuration.host, configuration.verify_ssl, configuration.tls_server_name, configuration.proxy)).encode()
    )
    for path in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file):
        found.update(b"\0" + Path(path).read_bytes() if path else b"\0none")
    return found.digest()
