"""The server's settings: one frozen object, read from the command line in one place. ``limits`` has the
numbers."""

from __future__ import annotations

import argparse
import ipaddress
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from certs.rotation import Lives
from kube import duration
from server.limits import BOUNDS, Limits, read_limits
from sources.sources import ClusterSource, Sources
from webhook.reload.shared_certificate import CertificateSecret

DEFAULT_LISTEN = "127.0.0.1:8443"
DEFAULT_HEALTH = "127.0.0.1:8080"
DEFAULT_LIMITS = Limits()
WILDCARDS = ("", "0.0.0.0", "::")


DEFAULT_WATCH, LEAST_WATCH, MOST_WATCH = 60, 5, 3600
"""Seconds of one watch. The API server itself ends watches after 30 to 60 minutes (--min-request-timeout);
that nothing arrives any more is noticed only at the end of a watch."""
DEFAULT_LEASE = "berth-system/berth"
DEFAULT_AUDIT_LEASE = "berth-system/berth-audit"
DEFAULT_SECRET = "berth-system/berth-certificates"
LIVES = {"ca_life": "ca", "leaf_life": "leaf", "ca_overlap": "overlap"}
"""Options, and the fields of ``Lives`` that they set."""
LEAST_LIFE = timedelta(minutes=5)
"""The shortest life of a serving certificate: replicas look every ten seconds, and a CA is followed by API servers in seconds."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class SettingsError(Exception):
    """Options that do not go together or cannot be read; the message says what to type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Exactly one of ``tls_files`` (certificate, key), ``self_signed`` (a folder) and ``cert_secret`` is
    given."""

    host: str
    port: int
    """The port; 0: any free one, which the ready line names."""
    health: tuple[str, int]
    """Host and port of /livez, /readyz and /metrics, without TLS, for a kubelet and Prometheus."""
    sources: Sources
    tls_files: tuple[Path, Path] | None = None
    self_signed: Path | None = None
    cert_secret: CertificateSecret | None = None
    """The Secret of the certificates that all replicas share."""
    more_names: tuple[str, ...] = ()
    """Names of a self-signed certificate, in addition to those that ``names`` finds:
    ``berth.berth-system.svc`` behind a Service."""
    client_ca: Path | None = None
    """CA certificates that issue the client certificates of callers; None: anybody may call."""
    client_names: tuple[str, ...] = ()
    """Names of which a caller's certificate must have one; empty: any certificate of that CA will do."""
    cluster: ClusterSource | None = None
    """The cluster that policies and facts come from, if not from files."""
    limits: Limits = DEFAULT_LIMITS
    version: str = ""
    """Berth's own version, as shown in /metrics."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a self-signed certificate: this machine's loopback names, the listening address, and
        ``more_names``."""
        host = [] if self.host in WILDCARDS else [self.host]
        return tuple(dict.fromkeys(["localhost", "127.0.0.1", "::1", *host, *self.more_names]))

    @classmethod
    def from_args(cls, args: argparse.Namespace, sources: Sources, version: str) -> ServeSettings:
        """Return the settings from the options of ``berth serve``. Raises SettingsError."""
        host, port = listen_address(args.listen)
        health = listen_address(args.health, "--health", DEFAULT_HEALTH)
        cluster, limits = cluster_source(args), _limits(args)
        if args.client_names and not args.client_ca:
            raise SettingsError("--client-names needs client certificates: add --client-ca FILE")
        return cls(
            host=host,
            port=port,
            health=health,
            sources=sources,
            cert_secret=_certificate_secret(args, cluster),
            tls_files=(Path(args.tls_cert), Path(args.tls_key)) if args.tls_cert else None,
            self_signed=Path(args.self_signed) if args.self_signed else None,
            more_names=args.names,
            client_ca=Path(args.client_ca) if args.client_ca else None,
            client_names=args.client_names,
            cluster=cluster,
            limits=limits,
            version=version,
        )


def _certificate_secret(args: argparse.Namespace, cluster: ClusterSource | None) -> CertificateSecret | None:
    """Return the Secret of the certificates; None if the options name the one other source. Raises SettingsError."""
    sources = [args.tls_cert or args.tls_key, args.self_signed, args.cert_secret]
    if len(list(filter(None, sources))) != 1 or bool(args.tls_cert) != bool(args.tls_key):
        raise SettingsError(
            "the API server calls only over TLS: set --tls-cert FILE and --tls-key FILE,"
            " or --self-signed DIR for a certificate created in DIR,"
            " or in a cluster --cert-secret NAMESPACE/NAME for a certificate that all replicas share (exactly one of the three)"
        )
    lives = _lives(args)
    if not args.cert_secret:
        if args.cert_source != "ours":
            raise SettingsError("--cert-source needs a Secret: add --cert-secret NAMESPACE/NAME")
        return None
    if cluster is None:
        raise SettingsError("--cert-secret names a Secret of a cluster: add --in-cluster or --kubeconfig FILE")
    if args.cert_source == "ours" and not args.names:
        raise SettingsError("--cert-secret issues a certificate for the Service that callers use: add --names NAME.NAMESPACE.svc")
    namespace, name = _object("--cert-secret", args.cert_secret, DEFAULT_SECRET)
    return CertificateSecret(namespace=namespace, name=name, source=args.cert_source, lives=lives)


def _lives(args: argparse.Namespace) -> Lives:
    """Return the lives of certificates. Raises SettingsError."""
    given = {name: _life(f"--{name.replace('_', '-')}", text) for name in LIVES if (text := getattr(args, name)) is not None}
    if given and not args.cert_secret:
        raise SettingsError(
            f"--{next(iter(given)).replace('_', '-')} applies to certificates in a Secret: add --cert-secret NAMESPACE/NAME"
        )
    lives = Lives(**{LIVES[name]: value for name, value in given.items()})
    if lives.leaf < LEAST_LIFE:
        raise SettingsError(f'--leaf-life "{args.leaf_life}" is less than 5m; for example, write --leaf-life 168h')
    if lives.ca < lives.leaf + 3 * lives.overlap:
        raise SettingsError(
            "--ca-life is too short: it must be at least --leaf-life plus three times --ca-overlap (defaults: 8760h, 168h and 1h)"
        )
    return lives


def _life(option: str, text: str) -> timedelta:
    try:
        return timedelta(seconds=duration.seconds(text))
    except duration.DurationError as error:
        raise SettingsError(f"{option} {error}") from None


def cluster_source(args: argparse.Namespace, lease: str = DEFAULT_LEASE) -> ClusterSource | None:
    """Return the cluster that the options name; None if none. ``lease``: an example of --lease. Raises
    SettingsError."""
    if not (args.kubeconfig or args.in_cluster):
        if args.context:
            raise SettingsError("--context needs a kubeconfig: add --kubeconfig FILE")
        return None
    if args.kubeconfig and args.in_cluster:
        raise SettingsError("--kubeconfig FILE and --in-cluster exclude each other: use one of them")
    if args.policies or args.dumps:
        raise SettingsError(
            "--policies and --from read files, --kubeconfig and --in-cluster read the cluster: use one or the other"
            " (kubectl apply -f FILE adds policies to the cluster)"
        )
    if args.in_cluster and args.context:
        raise SettingsError("--context needs a kubeconfig: remove it, or use --kubeconfig instead of --in-cluster")
    return ClusterSource(
        kubeconfig=args.kubeconfig, context=args.context, watch=_watch(args.watch), lease=_object("--lease", args.lease, lease)
    )


def _watch(text: str) -> int:
    if not text.isdecimal() or not LEAST_WATCH <= int(text) <= MOST_WATCH:
        raise SettingsError(
            f'--watch "{text}" is not between {LEAST_WATCH} and {MOST_WATCH} seconds; for example, write --watch {DEFAULT_WATCH}'
        )
    return int(text)


def _object(option: str, text: str, example: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (slash and _NAME.fullmatch(namespace) and _NAME.fullmatch(name)):
        raise SettingsError(f'{option} "{text}" is not NAMESPACE/NAME; for example, write {option} {example}')
    return namespace, name


def _limits(args: argparse.Namespace) -> Limits:
    try:
        return read_limits({name: getattr(args, name, None) for name in BOUNDS})
    except ValueError as error:
        raise SettingsError(str(error)) from None


def listen_address(text: str, option: str = "--listen", example: str = DEFAULT_LISTEN) -> tuple[str, int]:
    """Parse ``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT`` (all addresses). Raises SettingsError."""
    wrong = SettingsError(f'{option} "{text}" is not HOST:PORT; for example, write {option} {example}')
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise wrong
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        if not _is_v6(host):
            raise wrong
        raise SettingsError(f'{option} "{text}": write an IPv6 address in brackets, {option} "[{host}]:{port}"')
    return host or "::", int(port)


def _is_v6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def url(scheme: str, host: str, port: int) -> str:
    """Return ``https://HOST:PORT``, with an IPv6 address in brackets and a wildcard as localhost."""
    host = "localhost" if host in WILDCARDS else host
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The settings of `berth audit --serve`."""

    cluster: ClusterSource
    health: tuple[str, int]
    """Host and port of /livez, /readyz and /metrics."""
    sources: Sources
    prices: Path | None
    version: str

    @classmethod
    def from_args(cls, args: argparse.Namespace, sources: Sources, version: str) -> AuditSettings:
        """Return the settings from the options. Raises SettingsError."""
        cluster = cluster_source(args, DEFAULT_AUDIT_LEASE)
        if cluster is None:
            raise SettingsError("--serve watches a cluster: add --in-cluster or --kubeconfig FILE")
        if args.namespace:
            raise SettingsError("--serve reports on all namespaces: remove --namespace")
        health = listen_address(args.health, "--health", DEFAULT_HEALTH)
        return cls(cluster=cluster, health=health, sources=sources, prices=Path(args.prices) if args.prices else None, version=version)
