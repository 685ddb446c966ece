"""``make cluster`` where real kubelets can run: Berth's image is built, Helm installs its chart, and three nodes run the replicas."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from registration.configurations import NAME
from tests.testcluster.addons.berth import PROBE, create_namespace
from tests.testcluster.addons.helm import CHART, RELEASE, HelmRejected, helm, own_image
from tests.testcluster.addons.installed import NAMESPACE
from tests.testcluster.controlplane.cluster import Options
from tests.testcluster.controlplane.processes import ClusterFailed
from tests.testcluster.go_build import Progress
from tests.testcluster.images import archives
from tests.testcluster.images.store import NoImage
from tests.testcluster.kubelets import possible
from tests.testcluster.kubelets.rig import Rig
from tests.testcluster.kubelets.starting import rigged

_LINE = re.compile(r"^\S+ std(?:out|err) F (.*)$", re.MULTILINE)
"""of a container's log, as a runtime writes it (CRI)"""


def images(progress: Progress) -> Sequence[Path] | str:
    """Archives of the images that it needs, built where they have to be; or why there can be none, in a sentence."""
    if (reason := possible.missing()) is not None:
        return reason
    try:
        return archives.pause(progress), archives.berth(progress)
    except NoImage as error:
        return str(error)


@contextmanager
def real_nodes(loaded: Sequence[Path], options: Options) -> Iterator[Rig]:
    """Three, with these images."""
    with rigged(*loaded, options=options) as rig:
        yield rig


def install(rig: Rig, platforms: str, excluded: str) -> None:
    """By the README's command, with the image that was built here; for every namespace but ``excluded``. Its replicas are ready. Raises
    ClusterFailed."""
    create_namespace(rig.cluster, excluded)
    values = (*own_image(), "--set", f"platforms={{{platforms}}}", "--set", f"registration.excludedNamespaces={{{excluded}}}")
    command = ("install", RELEASE, str(CHART), "--create-namespace", "--namespace", NAMESPACE, "--wait", *values)
    try:
        helm(*command, kubeconfig=rig.kubeconfig)
    except HelmRejected as error:
        raise ClusterFailed(f"helm install: {error}\n{replica_logs(rig)}") from None
    rig.cluster.wait_for(lambda: _is_in_effect(rig), "the registration to be in effect")
    rig.cluster.wait_for(lambda: rig.api.try_create(PROBE, "default", dry_run=True).ok, "the API server to reach Berth's Service")


def _is_in_effect(rig: Rig) -> bool:
    """Return whether a replica has written the rules of the registration."""
    configuration = rig.api.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", NAME)
    return configuration is not None and any(entry.get("rules") for entry in configuration["webhooks"])


def replica_logs(rig: Rig) -> str:
    """The end of what each replica wrote."""
    return "\n".join(f"{file.parent.parent.name}:\n{file.read_text()[-2000:]}" for file in _files(rig))


def new_lines(rig: Rig) -> Callable[[], Iterator[str]]:
    """Each call gives what replicas have logged since the last."""
    read: dict[Path, int] = {}

    def lines() -> Iterator[str]:
        for file in _files(rig):
            try:
                data = file.read_bytes()[read.get(file, 0) :]
            except FileNotFoundError:  # a kubelet removes what a pod wrote at any moment
                continue
            whole = data[: data.rfind(b"\n") + 1]
            read[file] = read.get(file, 0) + len(whole)
            yield from _LINE.findall(whole.decode(errors="replace"))

    return lines


def _files(rig: Rig) -> list[Path]:
    """Return the logs of the pods. Unlike Path.glob, glob.glob passes over a folder that is removed meanwhile."""
    patterns = [f"{glob.escape(str(node.folder))}/pods/{NAMESPACE}_{RELEASE}-*/*/*.log" for node in rig.nodes.values()]
    return sorted(Path(name) for pattern in patterns for name in glob.glob(pattern))
