"""Workloads of Kubernetes' own, each with its owner and with the pods that its template would make, if they may hold
devices."""

from __future__ import annotations

from collections.abc import Callable

from analysis.audit.stored_pod import Controller, StoredPod, may_hold_devices
from analysis.audit.templates import template_pods
from catalog import Catalog
from cluster.survey.owners import owned
from cluster.watch.kinds import Watched
from kube.templates import CONTROLLERS, group_of
from kube.tree import Raw, map_at
from policies.pods.projection import Reads

PLURALS = {
    ("apps", "Deployment"): "deployments",
    ("apps", "StatefulSet"): "statefulsets",
    ("apps", "DaemonSet"): "daemonsets",
    ("batch", "Job"): "jobs",
    ("batch", "CronJob"): "cronjobs",
}
Templates = Callable[[Raw, str, str], tuple[StoredPod, ...]]
"""Returns the pods that an object's templates would make, of (object, apiVersion, kind)."""


def workloads(catalog: Catalog, wide: Reads) -> tuple[Watched, ...]:
    """Return the kinds. An object has ``uid``; ``owner``, its controller or None; ``templates``, its pods as they
    would be; and ``above``, itself as the controller of what would own those."""

    def templates(value: Raw, api_version: str, kind: str) -> tuple[StoredPod, ...]:
        template = map_at(value, *CONTROLLERS[group_of(api_version), kind].template)
        return template_pods(value, api_version, kind, catalog, wide) if may_hold_devices(template) else ()

    trim = trimmed(templates)
    return tuple(
        Watched(kind=kind, plural=plural, group=group, versions=("v1",), namespaced=True, trim=trim)
        for (group, kind), plural in PLURALS.items()
    )


def trimmed(templates: Templates) -> Callable[[Raw, str, str], Raw]:
    """Return what trims a workload whose pods are found this way."""

    def trim(value: Raw, api_version: str, kind: str) -> Raw:
        metadata = value["metadata"]
        names = {name: metadata[name] for name in ("name", "namespace", "resourceVersion") if name in metadata}
        above = Controller(api_version, kind, metadata["name"], str(metadata.get("uid") or ""))
        return {"metadata": names, **owned(value, api_version, kind), "templates": templates(value, api_version, kind), "above": above}

    return trim
