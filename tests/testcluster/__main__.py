"""``make cluster``: a real control plane in the foreground, with fake GPU nodes, Karpenter and Berth, until Ctrl-C.

    python -m tests.testcluster [FOLDER]      FOLDER: where kubeconfig, kubectl and the registration are found while it runs

It is what the end-to-end tests run on. kwok plays the kubelets: containers don't run, a Job's pods have succeeded after two minutes.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from bench.go_build import BuildFailed
from policies.catalog import Catalog
from tests.testcluster import berth, karpenter, nodes, programs
from tests.testcluster.berth import LIBRARY, ROOT, Berth
from tests.testcluster.cluster import Cluster, Options
from tests.testcluster.installed import install
from tests.testcluster.nodes import FakeNode
from tests.testcluster.processes import ClusterFailed
from tests.testcluster.programs import NoProgram
from tests.testcluster.starting import running
from webhook.files import read_catalog

FOLDER = ROOT / ".berth" / "cluster"
"""Unless another is named: the same at each start, so that README can name it."""
PLATFORMS = "karpenter-aws,gfd"
"""Said, as --platforms auto can't know it: this Karpenter's node class is kwok's, which buys AWS machines only in play"""
WITHOUT = "without-berth"
"""A namespace that Berth's registration leaves out, to compare"""
JOB_SECONDS = 120.0
LOOK = 0.5
"""seconds between two looks at the log and the processes"""


def main(folder: Path = FOLDER) -> int:
    """0 once stopped, 1 where something of it failed, 2 where it can't be started."""
    for number in (signal.SIGTERM, signal.SIGINT):  # SIGINT too: a shell starts its background jobs deaf to it
        signal.signal(number, _interrupt)
    try:
        with _only_one(folder), _whole(folder) as (cluster, replica):
            _follow(cluster, replica)
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
            for name in ("kubeconfig", "kubectl", "webhooks.yaml"):
                (folder / name).unlink(missing_ok=True)


@contextmanager
def _whole(folder: Path) -> Iterator[tuple[Cluster, Berth]]:
    """All of it, said part by part."""
    begun = time.monotonic()
    catalog = read_catalog()
    versions = programs.versions()
    with running(Options(job_seconds=JOB_SECONDS)) as cluster:
        _say(begun, f"kube-apiserver, kube-scheduler, kube-controller-manager {versions['Kubernetes']}, etcd, kwok {versions['kwok']}")
        fake = nodes.bare_metal(catalog)
        nodes.add(cluster, *fake)
        _say(begun, f"{len(fake)} nodes: {', '.join(map(_described, fake))}")
        _start_karpenter(cluster, catalog)
        _say(begun, f"Karpenter {versions['Karpenter']}: NodePool gpu, tainted; AWS machines with prices from the catalog")
        replica = _start_berth(cluster, folder)
        _say(begun, f"Berth: the policies of {LIBRARY.relative_to(ROOT)} as objects, for every namespace but {WITHOUT} (and the system's)")
        _leave_files(cluster, folder)
        _tell(cluster, folder)
        yield cluster, replica


def _say(begun: float, what: str) -> None:
    print(f"{time.monotonic() - begun:5.1f} s  {what}", flush=True)


def _described(node: FakeNode) -> str:
    """As a100-mig (MIG)."""
    return node.name if node.sharing == "Exclusive" else f"{node.name} ({node.sharing})"


def _start_karpenter(cluster: Cluster, catalog: Catalog) -> None:
    karpenter.start(cluster, karpenter.instance_types(catalog))
    cluster.api.create(karpenter.node_pool("gpu", capacity=("spot", "on-demand", "reserved")))


def _start_berth(cluster: Cluster, folder: Path) -> Berth:
    """Registered as `berth webhooks` prints it; that ``WITHOUT`` is left out is said by a catalog file, as a user would."""
    laid = cluster.folder / "catalog.yaml"
    laid.write_text(f"excludedNamespaces:\n- {{name: {WITHOUT}, source: general, mark: derived}}\n")
    kubeconfig = install(cluster)
    for file in sorted(LIBRARY.glob("*.yaml")):
        for value in yaml.safe_load_all(file.read_text()):
            reply = cluster.api.apply(value)
            assert reply.ok, reply.message
    replica = berth.serve(cluster, "berth", kubeconfig, "--platforms", PLATFORMS)
    berth.create_namespace(cluster, WITHOUT)
    values = berth.manifests(replica, catalog=laid)
    (folder / "webhooks.yaml").write_text(yaml.safe_dump_all(values, sort_keys=False))
    berth.register(cluster, values, replica, "default")
    return replica


def _leave_files(cluster: Cluster, folder: Path) -> None:
    """At fixed names: the kubeconfig, and a kubectl of the cluster's own version."""
    for name, original in (("kubeconfig", cluster.kubeconfig), ("kubectl", programs.path("kubectl"))):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(original)


def _tell(cluster: Cluster, folder: Path) -> None:
    """What to type, in another terminal."""
    lines = [f"export KUBECONFIG={folder / 'kubeconfig'}"]
    if shutil.which("kubectl") is None:
        lines.append(f"export PATH=$PATH:{folder}   # there is no kubectl here: this is one")
    lines += [f"kubectl apply -n {WITHOUT} -f docs/examples/train.yaml", "kubectl apply -f docs/examples/train.yaml"]
    lines += ["kubectl get pods -A -o wide --watch", "kubectl get gpu -A", "kubectl apply -f docs/examples/checkpoints.yaml"]
    print("\nIn another terminal:\n\n  " + "\n  ".join(lines))
    print(f"\nLogs: {cluster.folder}. Stays until Ctrl-C; each line below is a decision of Berth.\n", flush=True)


def _follow(cluster: Cluster, replica: Berth) -> None:
    """Tells decisions as they are logged, until Ctrl-C. Raises ClusterFailed once a process has ended."""
    before = ""
    with contextlib.suppress(KeyboardInterrupt), replica.process.log.open() as log:
        while True:
            for said in filter(None, (_sentence(berth.event(line)) for line in log)):
                print(f"{said.splitlines()[0]}, as the one before" if said == before else said, flush=True)
                before = said
            cluster.processes.check()
            time.sleep(LOOK)


def _sentence(event: dict[str, Any]) -> str:
    """Of a decision of /mutate; "" of what nobody needs here."""
    if event.get("event") == "decision" and event.get("phase") == "mutate":
        where = f"{event.get('namespace')}/{event.get('pod') or '(a new pod)'}"
        edits = "".join(f"\n    {edit}" for edit in map(_edit, event.get("edits", ())))
        refusals = "".join(f"\n    {one.get('code')}: {one.get('fact')}" for one in event.get("refusals", ()))
        return f"{where}: {event.get('decision')}{edits}{refusals}"
    return ""


def _edit(edit: Any) -> str:
    return f"{edit.get('rule')} {edit.get('path')} ({', '.join(edit.get('policies', ()))})" if isinstance(edit, dict) else str(edit)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
