"""How the console is reached, and by whom: read from the command line in one place."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from kube import duration
from webhook.settings import WILDCARDS, SettingsError, listen_address

LISTEN = "127.0.0.1:8480"
SESSION = "1h"
LEAST_SESSION, MOST_SESSION = 60, 24 * 3600
"""Seconds."""
OF_A_CLUSTER = {"audience": "--audience", "session": "--session", "url": "--url"}
"""Options that only a console where people sign in has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """At most one of ``tls_files`` (certificate, key) and ``self_signed`` (a folder) is given; none: plain HTTP."""

    host: str
    port: int
    """0: any free one."""
    signs_in: bool
    """True if people sign in with tokens of the cluster; else whoever opens the printed address may see everything."""
    session: int
    """Seconds."""
    audiences: tuple[str, ...] = ()
    url: str = ""
    """Of a proxy in front of it: ``https://console.example``."""
    names: tuple[str, ...] = ()
    tls_files: tuple[Path, Path] | None = None
    self_signed: Path | None = None

    @property
    def tls(self) -> bool:
        return bool(self.tls_files or self.self_signed)

    @property
    def certificate_names(self) -> tuple[str, ...]:
        """The names of a self-signed certificate."""
        host = [] if self.host in WILDCARDS else [self.host]
        outside = [urlsplit(self.url).hostname or ""] if self.url else []
        return tuple(dict.fromkeys(["localhost", "127.0.0.1", "::1", *host, *outside, *self.names]))


def settings(args: argparse.Namespace) -> ConsoleSettings:
    """Return what the options come to. Raises SettingsError."""
    host, port = listen_address(args.listen, "--listen", LISTEN)
    signs_in = bool(args.in_cluster)
    if signs_in and (args.kubeconfig or args.context or args.dumps or args.files):
        raise SettingsError("--in-cluster reads the pod's own cluster: remove --kubeconfig, --context, --from and --files")
    if not signs_in and (given := [flag for name, flag in OF_A_CLUSTER.items() if getattr(args, name)]):
        raise SettingsError(f"{given[0]} applies only where users sign in: add --in-cluster, or remove it")
    if (args.tls_cert is None) != (args.tls_key is None) or (args.tls_cert and args.self_signed):
        raise SettingsError("set --tls-cert FILE and --tls-key FILE, or --self-signed DIR (not both)")
    found = ConsoleSettings(
        host=host,
        port=port,
        signs_in=signs_in,
        session=_session(args.session or SESSION),
        audiences=tuple(args.audience),
        url=_url(args.url),
        names=args.names,
        tls_files=(Path(args.tls_cert), Path(args.tls_key)) if args.tls_cert else None,
        self_signed=Path(args.self_signed) if args.self_signed else None,
    )
    if not signs_in and not _is_loopback(host):
        raise SettingsError(
            f"--listen {args.listen}: anyone with the printed address sees all that you can see, so listen on this machine only; "
            f"write --listen 127.0.0.1:{port or 8480}, and use ssh -L from another machine"
        )
    if args.insecure_http and found.tls:
        raise SettingsError("--insecure-http serves plain HTTP: remove it, or remove --tls-cert and --self-signed")
    if not found.tls and not args.insecure_http and not _is_loopback(host):
        raise SettingsError(
            f"--listen {args.listen} is reachable from other machines, and users type tokens there: set --tls-cert and --tls-key, or "
            "--self-signed DIR; --insecure-http if only a proxy that terminates TLS can reach it"
        )
    return found


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _session(text: str) -> int:
    try:
        seconds = duration.seconds(text)
    except duration.DurationError as error:
        raise SettingsError(f"--session {error}") from None
    if not LEAST_SESSION <= seconds <= MOST_SESSION:
        raise SettingsError(f'--session "{text}" is not between 1m and 24h; for example, write --session {SESSION}')
    return seconds


def _url(text: str | None) -> str:
    if not text:
        return ""
    wrong = SettingsError(f'--url "{text}" is not https://HOST or https://HOST:PORT: the console needs its own host name, not a path')
    try:
        parts = urlsplit(text.rstrip("/").lower())
        plain = f"https://{parts.hostname}{f':{parts.port}' if parts.port not in (None, 443) else ''}"
    except ValueError:
        raise wrong from None
    if parts.scheme != "https" or not parts.hostname or parts.path or parts.query or parts.fragment or parts.username is not None:
        raise wrong
    return plain
