"""The server's settings: one frozen object, read from the command line in one place. ``limits`` has the numbers."""

from __future__ import annotations

import argparse
import ipaddress
import re
from dataclasses import dataclass, replace
from pathlib import Path

from webhook.limits import BOUNDS, Limits, read
from webhook.sources import Sources

DEFAULT_LISTEN = "127.0.0.1:8443"
DEFAULT_HEALTH = "127.0.0.1:8080"
DEFAULT_LIMITS = Limits()
WILDCARDS = ("", "0.0.0.0", "::")


DEFAULT_WATCH, LEAST_WATCH, MOST_WATCH = 60, 5, 3600
"""Seconds. The API server itself ends watches after 30 to 60 minutes (--min-request-timeout); silence is noticed only at the end of one."""
DEFAULT_LEASE = "berth-system/berth"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSource:
    """The API server that policies and facts come from."""

    kubeconfig: str | None
    """None: by the account of the pod that Berth runs in"""
    context: str | None
    watch: int
    """seconds that one watch lasts, and silence at most"""
    lease: tuple[str, str]
    """namespace and name of the Lease whose holder writes statuses"""


class SettingsError(Exception):
    """Options that do not go together or cannot be read; the message says what to type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Exactly one of ``tls_files`` (certificate, key) and ``self_signed`` (a folder) is given."""

    host: str
    port: int
    """0: any free one, which the ready line names"""
    health: tuple[str, int]
    """host and port of /livez, /readyz and /metrics, without TLS: a kubelet and Prometheus ask there"""
    sources: Sources
    tls_files: tuple[Path, Path] | None = None
    self_signed: Path | None = None
    more_names: tuple[str, ...] = ()
    """of a self-signed certificate, beside those that ``names`` finds: ``berth.berth-system.svc`` behind a Service"""
    cluster: ClusterSource | None = None
    """where policies and facts come from, if not from files"""
    limits: Limits = DEFAULT_LIMITS
    version: str = ""
    """Berth's own, as /metrics tells it"""

    @property
    def names(self) -> tuple[str, ...]:
        """What a self-signed certificate is made for: this machine's loopback names, where it listens, and what was given."""
        host = [] if self.host in WILDCARDS else [self.host]
        return tuple(dict.fromkeys(["localhost", "127.0.0.1", "::1", *host, *self.more_names]))

    @classmethod
    def from_args(cls, args: argparse.Namespace, sources: Sources, version: str) -> Settings:
        """From the options of ``berth serve``. Raises SettingsError."""
        host, port = listen_address(args.listen)
        health = listen_address(args.health, "--health", DEFAULT_HEALTH)
        common = cls(
            host=host,
            port=port,
            health=health,
            sources=sources,
            cluster=_cluster(args),
            limits=_limits(args),
            more_names=args.names,
            version=version,
        )
        if args.tls_cert and args.tls_key and not args.self_signed:
            return replace(common, tls_files=(Path(args.tls_cert), Path(args.tls_key)))
        if args.self_signed and not (args.tls_cert or args.tls_key):
            return replace(common, self_signed=Path(args.self_signed))
        raise SettingsError(
            "the API server calls only over TLS: give --tls-cert FILE and --tls-key FILE,"
            " or --self-signed DIR for a certificate made and kept in DIR (one of the two, not both)"
        )


def _cluster(args: argparse.Namespace) -> ClusterSource | None:
    if not (args.kubeconfig or args.in_cluster):
        if args.context:
            raise SettingsError("--context names a context of a kubeconfig: give --kubeconfig FILE too")
        return None
    if args.kubeconfig and args.in_cluster:
        raise SettingsError("--kubeconfig FILE and --in-cluster are two ways to the same: give one of the two")
    if args.policies or args.facts:
        raise SettingsError(
            "--policies and --facts read files, --kubeconfig and --in-cluster read the cluster: give the one or the other"
            " (kubectl apply -f FILE puts policies into the cluster)"
        )
    if args.in_cluster and args.context:
        raise SettingsError("--context names a context of a kubeconfig: leave it out with --in-cluster")
    return ClusterSource(kubeconfig=args.kubeconfig, context=args.context, watch=_watch(args.watch), lease=_lease(args.lease))


def _watch(text: str) -> int:
    if not text.isdecimal() or not LEAST_WATCH <= int(text) <= MOST_WATCH:
        raise SettingsError(f'--watch "{text}" is not of {LEAST_WATCH} to {MOST_WATCH} seconds; write for example --watch {DEFAULT_WATCH}')
    return int(text)


def _lease(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (slash and _NAME.fullmatch(namespace) and _NAME.fullmatch(name)):
        raise SettingsError(f'--lease "{text}" is not NAMESPACE/NAME; write for example --lease {DEFAULT_LEASE}')
    return namespace, name


def _limits(args: argparse.Namespace) -> Limits:
    try:
        return read({name: getattr(args, name, None) for name in BOUNDS})
    except ValueError as error:
        raise SettingsError(str(error)) from None


def listen_address(text: str, option: str = "--listen", example: str = DEFAULT_LISTEN) -> tuple[str, int]:
    """``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT`` (all addresses). Raises SettingsError."""
    wrong = SettingsError(f'{option} "{text}" is not HOST:PORT; write for example {option} {example}')
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
    """``https://HOST:PORT`` with an IPv6 address in brackets; a wildcard as localhost."""
    host = "localhost" if host in WILDCARDS else host
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
