"""Clusters that test files lease one after another: starting an API server costs more than most files do with it.

A cluster is lent to one file at a time. When it comes back, the store is put back to what was in it before anybody used it. Of a control
plane without real nodes all but etcd and the API server is ended then, and the next file gets a scheduler, controllers and kwok as its own
options say. A cluster on which a test failed, or that cannot be put back, is ended.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.etcd import store
from tests.testcluster.controlplane.processes import ClusterFailed, watched
from tests.testcluster.controlplane.restarting import STORE
from tests.testcluster.controlplane.starting import Starting

REGISTRY = "/registry/"
PASSING = tuple(f"{REGISTRY}{kind}/" for kind in ("leases", "masterleases", "ranges"))
"""what is written again and again, or is also kept in memory: it is not put back"""
PROBE: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
PROBE["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
"""what webhooks that are still known would be called for"""


class Lendable(Protocol):
    """What a pool keeps."""

    ending: ExitStack

    def reset(self) -> None:
        """Put everything back. Raises ClusterFailed, OSError and AssertionError where that cannot be done."""


L = TypeVar("L", bound=Lendable)


@dataclass(slots=True)
class Pool:
    """What one process has to lend."""

    idle: list[tuple[Hashable, Lendable]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """why each was ended that could not be put back"""

    @contextmanager
    def lent(self, key: Hashable, new: Callable[[], L], failed: Callable[[], bool]) -> Iterator[L]:
        """One that was lent by the same key before, else a new one. Its logs stay where ``failed()`` at the end. Raises what ``new``
        raises."""
        kept: L
        for kept_key, kept in self.idle:  # type: ignore[assignment]  # by the same key it is of the same type
            if kept_key == key:
                self.idle.remove((key, kept))
                break
        else:
            kept = new()
        with ExitStack() as stack:
            stack.push(lambda *_: kept.ending.close())
            yield kept
            if failed():
                kept.ending.pop_all().__exit__(ClusterFailed, ClusterFailed("a test failed on it"), None)
                return
            try:
                kept.reset()
            except (ClusterFailed, OSError, AssertionError) as error:
                self.ended.append(str(error).partition("\n")[0])
                return
            self.idle.append((key, kept))
            stack.pop_all()

    @contextmanager
    def plane(self, options: Options, failed: Callable[[], bool]) -> Iterator[Cluster]:
        """A control plane with nothing in it. Raises NoProgram and BuildFailed for what is not there, ClusterFailed for what does not
        start."""
        with self.lent((options.release, options.apiserver, options.tokens), lambda: _new_plane(options), failed) as plane:
            replace(plane.starting, options=options).add_controllers(plane.cluster)
            yield plane.cluster

    def close(self) -> None:
        """End all that are not lent."""
        while self.idle:
            self.idle.pop()[1].ending.close()


@dataclass(slots=True)
class Contents:
    """What was in a cluster's store at first, and what was served."""

    cluster: Cluster
    stored: dict[str, tuple[int, bytes]]
    """key -> revision and value; of PASSING without their values"""
    groups: frozenset[str]

    @classmethod
    def of(cls, cluster: Cluster) -> Contents:
        """As they are now."""
        with store(cluster) as etcd:
            stored = {
                key: (revision, b"" if key.startswith(PASSING) else etcd.get(key) or b"")
                for key, revision in etcd.revisions(REGISTRY).items()
            }
        return cls(cluster, stored, _groups(cluster))

    def put_back(self) -> None:
        """Delete what was added and write what was changed, then wait until the API server knows."""
        with store(self.cluster) as etcd:
            revisions = etcd.revisions(REGISTRY)
            etcd.delete_each([key for key in sorted(revisions, reverse=True) if key not in self.stored and not key.startswith(PASSING[1:])])
            changed = [key for key, (revision, _) in self.stored.items() if revisions.get(key) != revision and not key.startswith(PASSING)]
            etcd.put_all([(key, self.stored[key][1]) for key in changed])
            revisions = etcd.revisions(REGISTRY)
        self.stored = {key: (revisions.get(key, 0), value) for key, (_, value) in self.stored.items()}
        self.cluster.api.forget()
        self.cluster.wait_for(self._is_known, "the API server to know its store")

    def _is_known(self) -> bool:
        return _groups(self.cluster) == self.groups and self.cluster.api.try_create(PROBE, "default", dry_run=True).ok


@dataclass(slots=True, kw_only=True)
class Plane:
    """etcd and an API server."""

    starting: Starting
    cluster: Cluster
    ending: ExitStack
    contents: Contents
    files: frozenset[Path]

    def reset(self) -> None:
        """All but the two is ended, and their store put back."""
        processes, named = self.cluster.processes, self.cluster.named
        for name in STORE:
            named[name].check()
        for name in [name for name in named if name not in STORE]:
            del named[name]
        for process in reversed([process for process in processes.running if process not in named.values()]):
            processes.end(process)
        self.contents.put_back()
        (self.cluster.folder / "audit.log").write_bytes(b"")
        for file in {file for file in self.cluster.folder.iterdir() if not file.name.startswith(("kube-", "kwok"))} - self.files:
            shutil.rmtree(file) if file.is_dir() else file.unlink()


def _new_plane(options: Options) -> Plane:
    with ExitStack() as stack:
        processes = stack.enter_context(watched())
        starting = Starting(processes=processes, options=options)
        cluster = starting.store()
        stack.callback(cluster.api.close)
        contents, files = Contents.of(cluster), frozenset(cluster.folder.iterdir())
        return Plane(starting=starting, cluster=cluster, ending=stack.pop_all(), contents=contents, files=files)


def _groups(cluster: Cluster) -> frozenset[str]:
    return frozenset(group["name"] for group in cluster.api.call("GET", "/apis").body.get("groups", ()))
