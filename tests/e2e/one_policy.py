"""A single policy in Enforce: as a file, which Berth follows while it serves, or for some namespaces."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.testcluster.controlplane.api import Raw


def write(file: Path, require: Raw) -> None:
    """ClusterGPUPolicy/p: tolerates GPU taints, and requires this; {} for nothing."""
    spec: Raw = {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}} | ({"require": require} if require else {})
    value = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "p"}, "spec": spec}
    file.write_text(yaml.safe_dump(value))


def in_namespaces(name: str, spec: Raw) -> Raw:
    """A ClusterGPUPolicy in Enforce for namespaces with the label policy=``name``, which tolerates GPU taints besides."""
    match = {"namespaceSelector": {"matchLabels": {"policy": name}}}
    default = {"acceleratorTaints": "Tolerate", **spec.get("default", {})}
    kind = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}}
    return {**kind, "spec": {"mode": "Enforce", "match": match, **spec, "default": default}}
