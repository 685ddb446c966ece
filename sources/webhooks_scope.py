"""The scope of ``berth webhooks``: the namespaces whose pods are not judged, and resource names besides the catalog's, as options
name them and as a cluster has them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

from catalog import Catalog
from documents.files import read_catalog
from policies.document import InputError
from policies.facts.cluster_facts import ClusterFacts
from policies.pods.unlisted_accelerators import is_extended, overlooked
from registration.entries import ALWAYS, InstallChoices

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""The name of a namespace: a DNS label (RFC 1123)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNames:
    """The names found in one cluster at one moment."""

    namespaces: frozenset[str]
    names: tuple[str, ...]
    """Extended resources for which the webhooks are to be called, besides those of the catalog."""
    unread: tuple[str, ...]
    """The reasons why nodes or DeviceClasses could not be read, a sentence for each."""


def quoted(text: str) -> str:
    """Return what was typed, in quotes, at most 60 characters of it."""
    shown = json.dumps(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def names(given: Sequence[str], catalog: Catalog) -> list[str]:
    """Return the values of ``--resource-name`` without those that the catalog has anyway. Raises
    InputError."""
    for name in given:
        if not is_extended(name):
            message = f"{quoted(name)} is not an extended resource; write DOMAIN/NAME as in pods, for example example.com/gpu"
            raise InputError(file="--resource-name", message=message)
    return [name for name in given if catalog.resource(name) is None]


def namespaces(given: Sequence[str]) -> tuple[str, ...]:
    """Return the checked values of ``--exclude-namespace``. Raises InputError."""
    for name in given:
        if not _LABEL.fullmatch(name):
            message = f"{quoted(name)} is not a valid name of a namespace; see kubectl get namespaces"
            raise InputError(file="--exclude-namespace", message=message)
    return tuple(given)


def read_names(kubeconfig: str | None, context: str | None, catalog: Catalog) -> ClusterNames:
    """Read the names of a cluster. ``kubeconfig`` None: with the service account of the pod that this runs
    in.

    Raises InputError if the cluster is unreachable, or namespaces may not be read.
    """
    from cluster.client.access import Access
    from cluster.watch.kinds import ROWS
    from cluster.watch.listing import survey
    from sources.state import call_cluster, unread

    kinds = tuple(ROWS[kind] for kind in ("Namespace", "Node", "DeviceClass"))
    state = call_cluster(Access(kubeconfig, context), lambda client: survey(client, kinds))
    if "Namespace" in state.unread:
        message = f"cannot list namespaces ({state.unread['Namespace']}); ask for permission to list them"
        raise InputError(file="cluster", message=message)
    reasons = (f"{ROWS[kind].resource} cannot be listed, so their resource names are unknown: {why}" for kind, why in unread(state).items())
    facts = ClusterFacts.from_objects([*state.objects["Node"], *state.objects["DeviceClass"]], frozenset())
    namespaces = frozenset(value["metadata"]["name"] for value in state.objects["Namespace"])
    return ClusterNames(namespaces=namespaces, names=overlooked(facts, catalog), unread=tuple(reasons))


def excluded(catalog: Catalog, by_flag: Sequence[str], *, own: bool, found: ClusterNames | None) -> tuple[str, ...]:
    """Return the namespaces to exclude.

    These are the ones that kube-apiserver creates itself, those named by flag or by the operator's own
    catalog file (``own``), and of the others in the catalog those that exist in the cluster.
    """
    shipped = frozenset(read_catalog([]).excluded_namespaces if own else catalog.excluded_namespaces)
    there = found.namespaces if found is not None else frozenset[str]()
    listed = (name for name in catalog.excluded_namespaces if name not in shipped or name in there)
    return tuple(dict.fromkeys([*ALWAYS, *listed, *by_flag]))


def head(catalog: Catalog, chosen: InstallChoices, found: ClusterNames | None) -> str:
    """Return the comments at the top of the file: which namespaces are left out, and why no others are."""
    others = [name for name in catalog.excluded_namespaces if name not in chosen.excluded]
    sentences = [THERE if found else EVERYWHERE]
    if found and others:
        sentences.append(
            f"These do not exist and are not excluded: {', '.join(others)}. Print this file again when an operator is installed there."
        )
    if chosen.names:
        sentences.append(f"Resource names beside those of the catalog: {', '.join(chosen.names)}. {KNOWN}")
    return "".join(fill(one, 130, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False) + "\n" for one in sentences)


THERE = (
    "Berth is not called for pods in the namespaces excluded here. Only existing namespaces are listed: otherwise anyone who can create a"
    " namespace could take one of these names and bypass Berth."
)
EVERYWHERE = (
    "Berth is not called for pods in kube-system, kube-public, kube-node-lease and Berth's own namespace. Pods of GPU operators must not"
    " depend on Berth either: exclude the namespaces of your operators (--exclude-namespace gpu-operator), or let the command read the"
    " cluster (--kubeconfig FILE, --in-cluster)."
)
KNOWN = "Berth recognizes them by their DeviceClass, or by a --catalog file that both this command and serve get."
