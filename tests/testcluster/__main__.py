"""``make cluster``: a real control plane in the foreground, with fake GPU nodes, Karpenter and Berth, until Ctrl-C.

    python -m tests.testcluster [FOLDER] [--played]      FOLDER: where kubeconfig, kubectl and helm are found while it runs

It is what the end-to-end tests run on. kwok plays the kubelets of GPU nodes: containers don't run there, a Job's pods have succeeded after
two minutes. Berth is a real installation where this machine allows it (root on Linux, with what runs containers): its image is built, Helm
installs the chart, and three nodes with real kubelets run the replicas. Elsewhere, and with --played, it is a process beside the cluster.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from catalog import Catalog
from documents.files import read_catalog
from tests.testcluster import programs, real_nodes
from tests.testcluster.addons import berth, karpenter, nodes
from tests.testcluster.addons.berth import LIBRARY, ROOT
from tests.testcluster.addons.installed import install
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.processes import ClusterFailed
from tests.testcluster.controlplane.starting import running
from tests.testcluster.go_build import BuildFailed
from tests.testcluster.programs import NoProgram

FOLDER = ROOT / ".berth" / "cluster"
"""Unless another is named: the same at each start, so that docs/try.md can name it."""
PLATFORMS = "karpenter-aws,gfd"
"""Said, as --platforms auto can't know it: this Karpenter's node class is kwok's, which buys AWS machines only in play"""
WITHOUT = "without-berth"
"""A namespace that Berth's registration leaves out, to compare"""
JOB_SECONDS = 120.0
LOOK = 0.5
"""seconds between two looks at the log and the processes"""


Lines = Callable[[], Iterator[str]]
"""What Berth has logged since it was last asked"""


def main(folder: Path = FOLDER, *, played: bool = False) -> int:
    """0 once stopped, 1 where something of it failed, 2 where it can't be started."""
    for number in (signal.SIGTERM, signal.SIGINT):  # SIGINT too: a shell starts its background jobs deaf to it
        signal.signal(number, _interrupt)
    try:
        with _only_one(folder), whole(folder, played=played) as (cluster, lines):
            _follow(cluster, lines)
        print("\nstopped; nothing is left running")
    except KeyboardInterrupt:  # before it was up
        print("\nstopped while it started; nothing is left running")
    except ClusterFailed as error:
        print(f"make cluster: {error}\nnothing is left running", file=sys.stderr)
        return 1
    except (NoProgram, BuildFailed, OSError) as error:
        print(f"make cluster: {error}", file=sys.stderr)
        return 2
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Raises OSError where another runs there. The folder's files are there while it runs."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(f"a cluster runs already: export KUBECONFIG={folder / 'kubeconfig'}, or end it first") from None
        try:
            yield
        finally:
            for name in ("kubeconfig", "kubectl", "helm", "webhooks.yaml"):
                (folder / name).unlink(missing_ok=True)


@contextmanager
def whole(folder: Path, *, played: bool) -> Iterator[tuple[Cluster, Lines]]:
    """All of it, said part by part."""
    begun = time.monotonic()
    options = Options(job_seconds=JOB_SECONDS)
    programs.build(programs.PROGRAMS, lambda text: _say(begun, text))
    images = "--played was given" if played else real_nodes.images(lambda text: _say(begun, text))
    if isinstance(images, str):
        _say(begun, f"Berth runs beside the cluster, in no container: {images}")
        with running(options) as cluster:
            _say(begun, _control_plane())
            _add_nodes(begun, cluster, nodes.bare_metal(read_catalog()))
            lines = _start_berth(cluster, folder)
            _ready(begun, cluster, folder)
            yield cluster, lines
        return
    programs.build(programs.ON_A_NODE, lambda text: _say(begun, text))
    with real_nodes.real_nodes(images, options) as rig:
        _say(begun, f"{_control_plane()}; {', '.join(rig.nodes)}: kubelet, kube-proxy and containerd {programs.containerd_version()}")
        _add_nodes(begun, rig.outside, [node for node in nodes.bare_metal(read_catalog()) if node.taints])  # or kwok would play replicas
        real_nodes.install(rig, PLATFORMS, WITHOUT)
        _say(begun, "helm install of deploy/chart, with the image that was built here: three replicas are ready")
        _apply_library(rig.cluster)
        _ready(begun, rig.cluster, folder)
        yield rig.cluster, real_nodes.new_lines(rig)


def _control_plane() -> str:
    versions = programs.versions()
    return f"kube-apiserver, kube-scheduler, kube-controller-manager {versions['Kubernetes']}, etcd, kwok {versions['kwok']}"


def _add_nodes(begun: float, cluster: Cluster, fake: Sequence[FakeNode]) -> None:
    """And Karpenter, which buys others."""
    nodes.add(cluster, *fake)
    _say(begun, f"{len(fake)} nodes: {', '.join(map(_described, fake))}")
    _start_karpenter(cluster, read_catalog())
    _say(begun, f"Karpenter {programs.versions()['Karpenter']}: NodePool gpu, tainted; AWS machines with prices from the catalog")


def _ready(begun: float, cluster: Cluster, folder: Path) -> None:
    _say(begun, f"Berth: the policies of {LIBRARY.relative_to(ROOT)} as objects, for every namespace but {WITHOUT} (and the system's)")
    _leave_files(cluster, folder)
    _tell(cluster, folder)


def _say(begun: float, what: str) -> None:
    print(f"{time.monotonic() - begun:5.1f} s  {what}", flush=True)


def _described(node: FakeNode) -> str:
    """As a100-mig (MIG)."""
    return node.name if node.sharing == "Exclusive" else f"{node.name} ({node.sharing})"


def _start_karpenter(cluster: Cluster, catalog: Catalog) -> None:
    karpenter.start(cluster, karpenter.instance_types(catalog))
    cluster.api.create(karpenter.node_pool("gpu", capacity=("spot", "on-demand", "reserved")))


def _start_berth(cluster: Cluster, folder: Path) -> Lines:
    """Registered as `berth webhooks` prints it; that ``WITHOUT`` is left out is said by a catalog file, as a user would."""
    laid = cluster.folder / "catalog.yaml"
    laid.write_text(f"excludedNamespaces:\n- {{name: {WITHOUT}, source: general, mark: derived}}\n")
    kubeconfig = install(cluster)
    _apply_library(cluster)
    replica = berth.serve(cluster, "berth", kubeconfig, "--platforms", PLATFORMS)
    berth.create_namespace(cluster, WITHOUT)
    values = berth.manifests(replica, catalog=laid)
    (folder / "webhooks.yaml").write_text(yaml.safe_dump_all(values, sort_keys=False))
    berth.register(cluster, values, replica, "default", whole=True)
    log = replica.process.log.open()
    return lambda: iter(log)


def _apply_library(cluster: Cluster) -> None:
    for file in sorted(LIBRARY.glob("*.yaml")):
        for value in yaml.safe_load_all(file.read_text()):
            reply = cluster.api.apply(value)
            assert reply.ok, reply.message


def _leave_files(cluster: Cluster, folder: Path) -> None:
    """At fixed names: the kubeconfig, a kubectl of the cluster's own version, and Helm."""
    for name, original in (("kubeconfig", cluster.kubeconfig), *((name, programs.path(name)) for name in ("kubectl", "helm"))):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(original)


def _tell(cluster: Cluster, folder: Path) -> None:
    """What to type, in another terminal."""
    lines = [f"export KUBECONFIG={folder / 'kubeconfig'}"]
    if shutil.which("kubectl") is None:
        lines.append(f"export PATH=$PATH:{folder}   # there is no kubectl here: this is one")
    lines += [f"kubectl apply -n {WITHOUT} -f docs/examples/train.yaml", "kubectl apply -f docs/examples/train.yaml"]
    lines += ["kubectl get pods -A -o wide --watch", "kubectl get cgpup,gpup,gpunt -A", "kubectl apply -f docs/examples/checkpoints.yaml"]
    print("\nIn another terminal:\n\n  " + "\n  ".join(lines))
    print(f"\nLogs: {cluster.folder}. Stays until Ctrl-C; each line below is a decision of Berth.\n", flush=True)


def _follow(cluster: Cluster, lines: Lines) -> None:
    """Tells decisions as they are logged, until Ctrl-C. Raises ClusterFailed once a process has ended."""
    before = ""
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            for sentence in filter(None, (_sentence(berth.event(line)) for line in lines())):
                print(f"{sentence.splitlines()[0]}, as the one before" if sentence == before else sentence, flush=True)
                before = sentence
            cluster.processes.check()
            time.sleep(LOOK)


def _sentence(event: dict[str, Any]) -> str:
    """Of a decision of /mutate; "" of what nobody needs here."""
    if event.get("event") == "decision" and event.get("phase") == "mutate":
        where = f"{event.get('namespace')}/{event.get('pod') or '(a new pod)'}"
        edits = "".join(f"\n    {edit}" for edit in map(_edit, event.get("edits", ())))
        denials = "".join(f"\n    {one.get('code')}: {one.get('fact')}" for one in event.get("denials", ()))
        return f"{where}: {event.get('decision')}{edits}{denials}"
    return ""


def _edit(edit: Any) -> str:
    return f"{edit.get('rule')} {edit.get('path')} ({', '.join(edit.get('policies', ()))})" if isinstance(edit, dict) else str(edit)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--played"]
    sys.exit(main(*map(Path, words[:1]), played="--played" in sys.argv))
