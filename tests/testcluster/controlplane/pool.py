"""Control planes that test files lease one after another: starting an API server costs more than most files do with it.

A plane is lent to one file at a time. When it comes back, all but etcd and the API server is ended, and the store is put back to what the
API server wrote at its start. The next file gets a scheduler, controllers and kwok as its own options say. A plane on which a test failed,
or that cannot be put back, is ended.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.etcd import store
from tests.testcluster.controlplane.processes import ClusterFailed, watched
from tests.testcluster.controlplane.restarting import STORE
from tests.testcluster.controlplane.starting import Starting

REGISTRY = "/registry/"
PASSING = tuple(f"{REGISTRY}{kind}/" for kind in ("leases", "masterleases", "ranges"))
"""what the API server writes again and again, or also keeps in memory"""
PROBE: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
PROBE["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
"""what webhooks that are still known would be called for"""


@dataclass(slots=True, kw_only=True)
class Plane:
    """etcd and an API server, with what was in the store before anybody used them."""

    starting: Starting
    cluster: Cluster
    ending: ExitStack
    stored: dict[str, tuple[int, bytes]]
    """key -> revision and value"""
    groups: frozenset[str]
    """that the API server serves"""
    files: frozenset[Path]

    def reset(self) -> None:
        """Put everything back. Raises ClusterFailed, OSError and AssertionError where that cannot be done."""
        processes, named = self.cluster.processes, self.cluster.named
        for name in STORE:
            named[name].check()
        for name in [name for name in named if name not in STORE]:
            del named[name]
        for process in reversed([process for process in processes.running if process not in named.values()]):
            processes.end(process)
        with store(self.cluster) as etcd:
            revisions = etcd.revisions(REGISTRY)
            etcd.delete_each([key for key in sorted(revisions, reverse=True) if key not in self.stored and not key.startswith(PASSING[1:])])
            etcd.put_all([(key, value) for key, (revision, value) in self.stored.items() if revisions.get(key) != revision])
            revisions = etcd.revisions(REGISTRY)
            self.stored = {key: (revisions.get(key, 0), value) for key, (_, value) in self.stored.items()}
        self.cluster.api.forget()
        processes.wait_for(self._is_back, "the API server to know its store")
        (self.cluster.folder / "audit.log").write_bytes(b"")
        for file in {file for file in self.cluster.folder.iterdir() if not file.name.startswith(("kube-", "kwok"))} - self.files:
            shutil.rmtree(file) if file.is_dir() else file.unlink()

    def _is_back(self) -> bool:
        api = self.cluster.api
        return _groups(api) == self.groups and api.try_create(PROBE, "default", dry_run=True).ok


@dataclass(slots=True)
class Pool:
    """The planes of one process."""

    idle: list[Plane] = field(default_factory=list)
    started: int = 0
    ended: list[str] = field(default_factory=list)
    """why each was ended that could not be put back"""

    @contextmanager
    def lent(self, options: Options, failed: Callable[[], bool]) -> Iterator[Cluster]:
        """A cluster with nothing in it; its logs stay where ``failed()`` at the end. Raises NoProgram and BuildFailed for what is not
        there, ClusterFailed for what does not start."""
        server = options.release, options.apiserver, options.tokens
        for plane in self.idle:
            its = plane.starting.options
            if (its.release, its.apiserver, its.tokens) == server:
                self.idle.remove(plane)
                break
        else:
            plane = self._new(options)
        with ExitStack() as stack:
            stack.push(lambda *_: plane.ending.close())
            replace(plane.starting, options=options).add_controllers(plane.cluster)
            yield plane.cluster
            if failed():
                plane.ending.pop_all().__exit__(ClusterFailed, ClusterFailed("a test failed on it"), None)
                return
            try:
                plane.reset()
            except (ClusterFailed, OSError, AssertionError) as error:
                self.ended.append(str(error).partition("\n")[0])
                return
            self.idle.append(plane)
            stack.pop_all()

    def _new(self, options: Options) -> Plane:
        self.started += 1
        with ExitStack() as stack:
            processes = stack.enter_context(watched())
            starting = Starting(processes=processes, options=options)
            cluster = starting.store()
            stack.callback(cluster.api.close)
            with store(cluster) as etcd:
                keys = [item for item in etcd.revisions(REGISTRY).items() if not item[0].startswith(PASSING)]
                stored = {key: (revision, etcd.get(key) or b"") for key, revision in keys}
            return Plane(
                starting=starting,
                cluster=cluster,
                ending=stack.pop_all(),
                stored=stored,
                groups=_groups(cluster.api),
                files=frozenset(cluster.folder.iterdir()),
            )

    def close(self) -> None:
        """End every plane that is not lent."""
        while self.idle:
            self.idle.pop().ending.close()


def _groups(api: Api) -> frozenset[str]:
    return frozenset(group["name"] for group in api.call("GET", "/apis").body.get("groups", ()))
