"""The server's settings: one frozen object, read from the command line in one place. Each number has its reason."""

from __future__ import annotations

import argparse
import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path

from webhook.sources import Sources

DEFAULT_LISTEN = "127.0.0.1:8443"


class SettingsError(Exception):
    """Options that do not go together or cannot be read; the message says what to type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Exactly one of ``tls_files`` (certificate, key) and ``self_signed`` (a folder) is given."""

    host: str
    port: int
    """0: any free one, which the ready line names"""
    sources: Sources
    tls_files: tuple[Path, Path] | None = None
    self_signed: Path | None = None

    body_limit: int = 7 * 1024 * 1024
    """Bytes. A client may send the API server 3 MiB; an update's review holds the object twice, and JSON is longer than
    the protobuf it came as. controller-runtime caps at the same 7 MiB."""

    keep_alive: int = 120
    """Seconds. The API server keeps idle connections 90 s: closing earlier races with its next call, and a lost POST is
    never sent again (229 of 1,200 calls failed with uvicorn's own 5 s; none with 120)."""

    drain: int = 30
    """Seconds that calls in flight get after SIGTERM: the longest timeout a webhook may have."""

    @property
    def names(self) -> tuple[str, ...]:
        """What a self-signed certificate is made for: this machine's loopback names, and where it listens."""
        wildcard = self.host in ("", "0.0.0.0", "::")
        return tuple(dict.fromkeys(["localhost", "127.0.0.1", "::1", *([] if wildcard else [self.host])]))

    @property
    def url(self) -> str:
        """``https://HOST:PORT`` with an IPv6 address in brackets; a wildcard as localhost."""
        host = "localhost" if self.host in ("", "0.0.0.0", "::") else self.host
        return f"https://{f'[{host}]' if ':' in host else host}:{self.port}"

    def at_port(self, port: int) -> Settings:
        """The same with the port that was really bound."""
        return replace(self, port=port)

    @classmethod
    def from_args(cls, args: argparse.Namespace, sources: Sources) -> Settings:
        """From the options of ``berth serve``. Raises SettingsError."""
        host, port = listen_address(args.listen)
        if args.tls_cert and args.tls_key and not args.self_signed:
            return cls(host=host, port=port, sources=sources, tls_files=(Path(args.tls_cert), Path(args.tls_key)))
        if args.self_signed and not (args.tls_cert or args.tls_key):
            return cls(host=host, port=port, sources=sources, self_signed=Path(args.self_signed))
        raise SettingsError(
            "the API server calls only over TLS: give --tls-cert FILE and --tls-key FILE,"
            " or --self-signed DIR for a certificate made and kept in DIR (one of the two, not both)"
        )


def listen_address(text: str) -> tuple[str, int]:
    """``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT`` (all addresses). Raises SettingsError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f'--listen "{text}" is not HOST:PORT; write for example --listen {DEFAULT_LISTEN}')
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise SettingsError(f'--listen "{text}": write an IPv6 address in brackets, --listen "[{_v6(host, text)}]:{port}"')
    return host or "::", int(port)


def _v6(host: str, text: str) -> str:
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError:
        raise SettingsError(f'--listen "{text}" is not HOST:PORT; write for example --listen {DEFAULT_LISTEN}') from None
