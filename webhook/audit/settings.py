"""The settings of `berth audit --serve`: one frozen object, read from the command line in one place."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from sources.sources import ClusterSource, Sources
from webhook.settings import DEFAULT_AUDIT_LEASE, DEFAULT_HEALTH, SettingsError, cluster_source, listen_address


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """All of them."""

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
