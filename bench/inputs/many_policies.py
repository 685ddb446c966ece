"""Write many policies in a thousand namespaces: the shipped library, and for every four of a team's own one of the cluster's for a team."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from bench.inputs.bodies import NAMESPACES
from bench.inputs.workloads import namespace
from policies.policy import API_VERSION
from tests.testcluster.addons.berth import LIBRARY

SHIPPED = 6
"""policies in the library"""
PER_FILE = 250
WATCHED = namespace(0)
"""The first policy of the cluster's is for it."""
_BETWEEN = "---\n"
_SPECS: tuple[dict[str, Any], ...] = (
    {"require": {"gpusPerPod": {"max": 100}}},
    {"match": {"workloads": ["Job", "PyTorchJob"], "gpus": {"min": 4}}, "default": {"gracePeriod": "20m"}},
    {"match": {"workloads": ["Notebook"]}, "default": {"capacity": ["on-demand"]}},
    {"match": {"gpus": {"min": 2}}, "require": {"families": {"notIn": ["volta", "turing"]}}},
    {"match": {"gpus": {"max": 1}}, "require": {"gracePeriod": {"max": "2h"}}},
    {"match": {"podSelector": {"matchLabels": {"tier": "batch"}}}, "default": {"gracePeriod": "5m"}},
    {"require": {"tolerations": {"forbid": [{"key": "example.com/reserved"}]}}},
)


def write(number: int, folder: Path) -> None:
    """Write ``policies``, a folder of so many, library included, and ``namespaces.yaml``: for --policies and --from."""
    policies = folder / "policies"
    shutil.copytree(LIBRARY, policies)
    values = list(_policies(number - SHIPPED))
    for start in range(0, len(values), PER_FILE):
        (policies / f"teams-{start // PER_FILE:03}.yaml").write_text(_yaml(values[start : start + PER_FILE]))
    labels = ({"unit": f"unit-{i:03}", "environment": "prod"} for i in range(NAMESPACES))
    metadata = ({"name": namespace(i), "labels": each} for i, each in enumerate(labels))
    (folder / "namespaces.yaml").write_text(_yaml({"apiVersion": "v1", "kind": "Namespace", "metadata": each} for each in metadata))


def change(policies: Path, most: int) -> None:
    """Rewrite the first file of teams, so that its first policy allows ``most`` GPUs for each pod in ``WATCHED``."""
    file = policies / "teams-000.yaml"
    first, end, rest = file.read_text().partition(_BETWEEN)
    policy = yaml.load(first, yaml.CSafeLoader)
    policy["spec"]["require"] = {"gpusPerPod": {"max": most}}
    beside = policies.parent / "teams.new"
    beside.write_text(_yaml([policy]) + end + rest)
    beside.replace(file)


def _yaml(documents: Iterable[dict[str, Any]]) -> str:
    return _BETWEEN.join(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False) for document in documents)


def _policies(number: int) -> Iterator[dict[str, Any]]:
    for i in range(number):
        at = i * 7 % NAMESPACES  # seven and a thousand share no factor: every namespace is met
        kind, metadata = "GPUPolicy", {"name": f"own-{i:05}", "namespace": namespace(at)}
        spec: dict[str, Any] = {"mode": "Enforce", **_SPECS[i % len(_SPECS)]}
        if i % 5 == 0:
            kind, metadata = "ClusterGPUPolicy", {"name": f"unit-{i:05}"}
            spec["match"] = {**spec.get("match", {}), "namespaceSelector": {"matchLabels": {"unit": f"unit-{at:03}"}}}
        yield {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
