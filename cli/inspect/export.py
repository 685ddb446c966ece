"""`berth export scheduler`: a configuration of kube-scheduler with a profile that packs GPU pods, so that whole nodes
stay free for those that need one. Nothing is sent anywhere."""

from __future__ import annotations

import argparse
import re
from typing import Any

from cli.output import yaml_writer
from documents.files import read_catalog
from policies.catalog import Catalog
from policies.document import InputError
from policies.objects.parts import DNS_SUBDOMAIN

API_VERSION = "kubescheduler.config.k8s.io/v1"
"""Of KubeSchedulerConfiguration and of the arguments of its plugins, since Kubernetes 1.25 (k8s.io/kube-scheduler config/v1)."""
NAME = "gpu-packing"
WEIGHT = 20
"""Of the plugin that packs. Those that are left, InterPodAffinity, NodeAffinity, TaintToleration and ImageLocality, weigh 2, 2, 3 and 1
(k8s.io/kubernetes pkg/scheduler/apis/config/v1/default_plugins.go), and each gives a node at most 100: together they move no pod by
more than 40 of the 100 points of this one, fewer than four of eight devices."""
DEVICE = 100
"""What a device weighs, beside 1 for cpu and 1 for memory: between nodes with as many devices taken, these decide."""
SPREADING = ("NodeResourcesBalancedAllocation", "PodTopologySpread")
"""Plugins whose scores spread pods over nodes by default."""
HEAD = """\
# A profile of kube-scheduler that packs GPU pods. Made by `berth export scheduler`.
# Run kube-scheduler with --config=FILE: the cluster's own, or a second one beside it; clientConnection and leaderElection are yours to add.
# Pods choose it by schedulerName, or a policy does for them: default.schedulerName.
"""


def add_parser(subparsers: Any) -> None:
    """Add `export` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "export",
        help="configuration of other programs that fits the policies",
        description="Print a KubeSchedulerConfiguration whose profile puts GPU pods on the fullest node that has room for them. "
        "Exit code 2: bad input.",
        examples=(
            ("The profile, for kube-scheduler --config", "%(prog)s scheduler > scheduler.yaml"),
            ("Under another name, with a resource of your own", "%(prog)s scheduler --name packing --resource-name acme.example/npu"),
        ),
    )
    add = parser.add_argument
    add("what", choices=("scheduler",), help="a KubeSchedulerConfiguration")
    add("--name", metavar="NAME", default=NAME, help=f"the schedulerName of the profile; {NAME} without it")
    add("--resource-name", metavar="NAME", action="append", default=[], help="a further extended resource to pack by; may be repeated")
    add("--catalog", metavar="FILE", help="a file laid over the catalog: its devices are packed by too")


def run(args: argparse.Namespace) -> int:
    """Print the configuration. Raises InputError and CatalogFilesError."""
    if not re.fullmatch(DNS_SUBDOMAIN, args.name) or len(args.name) > 253:
        raise InputError(file="--name", message=f'"{args.name}" is not the name of a scheduler; write for example {NAME}')
    for name in args.resource_name:
        if "/" not in name:
            raise InputError(file="--resource-name", message=f'"{name}" is not an extended resource; write for example acme.example/npu')
    catalog = read_catalog([args.catalog] if args.catalog else [])
    print(HEAD + yaml_writer.text(configuration(catalog, args.name, args.resource_name)), end="")
    return 0


def configuration(catalog: Catalog, name: str = NAME, more: list[str] | None = None) -> dict[str, Any]:
    """Return the KubeSchedulerConfiguration with one profile of this name, which packs by the catalog's whole devices and by ``more``."""
    devices = dict.fromkeys([*catalog.whole.values(), *(more or ())])
    resources = [{"name": one, "weight": DEVICE} for one in devices] + [{"name": one, "weight": 1} for one in ("cpu", "memory")]
    strategy = {"type": "MostAllocated", "resources": resources}
    arguments = {"apiVersion": API_VERSION, "kind": "NodeResourcesFitArgs", "scoringStrategy": strategy}
    disabled = [{"name": one} for one in ("NodeResourcesFit", *SPREADING)]
    return {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": name,
                "plugins": {"score": {"disabled": disabled, "enabled": [{"name": "NodeResourcesFit", "weight": WEIGHT}]}},
                "pluginConfig": [{"name": "NodeResourcesFit", "args": arguments}],
            }
        ],
    }
