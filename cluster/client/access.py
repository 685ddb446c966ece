"""The API server's address and the credentials for it: from a kubeconfig, or from a pod's service account.

A kubeconfig is read by the official client's loaders, which support exec plugins, token files and every form of
certificate. They are imported where one is read: a pod does not need them (``in_cluster``).
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from cluster.client import in_cluster
from cluster.client.errors import SHOWN, AccessError

LOADING = 30.0
"""Timeout in seconds for an exec plugin: those of clouds ask a token service, which takes a second or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedAccess:
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
    mounted: Path = in_cluster.MOUNTED
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def in_cluster(self) -> bool:
        return self.kubeconfig is None

    async def load(self) -> LoadedAccess:
        """Read address and credentials again. Raises AccessError."""
        try:
            async with asyncio.timeout(LOADING):
                return self._of_pod() if self.kubeconfig is None else await self._of_file(self.kubeconfig)
        except AccessError:
            raise
        except TimeoutError as error:
            raise AccessError(f"{self._named}: its credentials did not arrive within {LOADING:.0f} s; try {self._try}") from error
        except Exception as error:  # the loaders raise any exception on a malformed file
            reason = " ".join(str(error).split())[:SHOWN]
            raise AccessError(f"{self._named} can't be used: {type(error).__name__}: {reason}; try {self._try}") from error

    def token(self) -> str:
        """Read a pod's token again, as the kubelet replaces it before it expires, and return the
        Authorization header.

        Raises ValueError.
        """
        return in_cluster.token(self.mounted)

    def _of_pod(self) -> LoadedAccess:
        try:
            server = in_cluster.server(self.environment)
            context, ca_hash = in_cluster.trust(self.mounted)
            authorization = self.token()
        except ValueError as error:
            raise AccessError(f"{self._named} can't be used: {error}; try {self._try}") from error
        return LoadedAccess(
            server=server,
            authorization=authorization,
            context=context,
            server_name=None,
            proxy=proxy_of(server),
            namespace=in_cluster.namespace(self.mounted),
            identity=server.encode() + ca_hash,
        )

    async def _of_file(self, path: str) -> LoadedAccess:
        if not any(Path(one).expanduser().is_file() for one in path.split(os.pathsep) if one):
            raise AccessError(f"there is no kubeconfig {path}; give --kubeconfig FILE (kubectl's: echo $KUBECONFIG)")
        exec_plugins = await asyncio.to_thread(importlib.import_module, "cluster.client.exec_plugins")  # with kubernetes: takes 0.2 s
        from kubernetes.aio.client.configuration import Configuration

        configuration: Any = Configuration()
        try:
            loader = await exec_plugins.load_kube_config(path, self.context, configuration)
        except AccessError as error:
            raise AccessError(f"{self._named}: {error}; try {self._try}") from None
        context: dict[str, Any] = loader.current_context["context"]
        authorization = configuration.api_key.get("BearerToken")
        if authorization is None and configuration.cert_file is None and (configuration.host.startswith("https:") or loader.provider):
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


def _loaded(configuration: Any, authorization: str | None, namespace: str) -> LoadedAccess:
    from kubernetes.aio.client.rest import RESTClientObject

    return LoadedAccess(
        server=configuration.host.rstrip("/"),
        authorization=" ".join(authorization.split()) if authorization else None,
        context=RESTClientObject(configuration).ssl_context,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy or proxy_of(configuration.host),
        namespace=namespace,
        identity=_identity(configuration),
    )


def _identity(configuration: Any) -> bytes:
    """Return the hash for ``LoadedAccess.identity``. Certificates count by content, as their files are renewed in
    place."""
    found = hashlib.sha256(
        repr((configuration.host, configuration.verify_ssl, configuration.tls_server_name, configuration.proxy)).encode()
    )
    for path in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file):
        found.update(b"\0" + Path(path).read_bytes() if path else b"\0none")
    return found.digest()


def proxy_of(server: str) -> str | None:
    """Return the proxy for https://HOST:PORT, or None.

    NO_PROXY may hold hosts, domains, and networks such as 10.0.0.0/8, where Services are.
    """
    parts = urlsplit(server)
    host, proxies = (parts.hostname or "").lower(), getproxies_environment()
    passed = [one.strip().lower() for one in proxies.get("no", "").split(",") if one.strip()]
    if host == "localhost" or any(_covers(one, host, f"{host}:{parts.port}") for one in (*passed, "127.0.0.0/8", "::1/128")):
        return None
    return proxies.get(parts.scheme)


def _covers(one: str, host: str, with_port: str) -> bool:
    if one in ("*", host, with_port):
        return True
    if "/" in one:
        try:
            return ip_address(host) in ip_network(one, strict=False)
        except ValueError:
            return False
    return host.endswith(f".{one.removeprefix('*').removeprefix('.')}")
