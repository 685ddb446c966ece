"""The writer of statuses: one replica writes the findings of ``analysis.conditions`` wherever a stored status
differs.

Every write is a merge patch with the resourceVersion that was read: if another writer was faster, it fails,
and the new object arrives by the watch. An object is compared again when it or its finding has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from analysis.conditions import ObjectStatus
from cluster.client.errors import Reply
from cluster.reconciler import Correction, Reconciler, WorkSlice
from cluster.status.computation import StatusComputation
from cluster.status.events import Events
from cluster.status.patch import differs, patch, stored_conditions, stored_version
from cluster.watch.kinds import status_path
from kube.tree import map_at
from policies.state.objects import Key, ObjectEntry, id_of
from policies.state.updater import Update


@dataclass(kw_only=True)
class StatusWriter(Reconciler[Key]):
    """The writer of statuses: ``take`` gives it the current state. At its rate, ten thousand objects take eight minutes, at no
    noticeable load of the API server."""

    task: ClassVar[str] = "statuses"

    events: Events | None = None
    _known: Update | None = None
    _statuses: dict[Key, ObjectStatus] = field(default_factory=dict)
    _seen: dict[Key, tuple[ObjectStatus, str]] = field(default_factory=dict)
    """Object -> (finding, resourceVersion) that were added to the queue."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._computation = StatusComputation(self.client, self.log_error, self.clock)

    @property
    def searched(self) -> int:
        """The number of times that findings were computed."""
        return self._computation.done

    def take(self, update: Update) -> None:
        """Set the current state."""
        self._known = update
        self.changed.set()

    def forget(self) -> None:
        """Forget which objects were compared, too."""
        super().forget()
        self._seen.clear()

    async def collect(self) -> bool:
        """Compute findings if anything has changed, and add the objects of which the finding or the object is new."""
        if self._known is None:
            return False
        known, work = self._known, WorkSlice()
        self._statuses = await self._computation.compute(known)
        for key in self._seen.keys() - self._statuses.keys():
            del self._seen[key]
            self.drop(key)
        for key, finding in self._statuses.items():
            entry = known.entries.get(key)
            if entry is not None and self._seen.get(key) != (finding, entry.resource_version):
                self._seen[key] = finding, entry.resource_version
                self.add([key])
            await work.over()
        return True

    def correction(self, key: Key) -> Correction | None:
        """Return the patch of the status.

        None if the object has another uid or generation than the finding: then there will be another finding.
        """
        finding, entry = self._statuses.get(key), self._known.entries.get(key) if self._known is not None else None
        if finding is None or entry is None or (entry.uid, entry.generation) != (finding.uid, finding.generation):
            return None
        if not differs(finding, entry.status):
            return None
        return Correction(
            subject=id_of(key),
            desired=finding,
            stored=entry.resource_version,
            answered=partial(self._answered, finding, entry),
            path=status_path(key),
            body=patch(finding, entry.status, entry.resource_version),
        )

    def _answered(self, finding: ObjectStatus, entry: ObjectEntry, reply: Reply) -> str:
        """Send Events about a status that was written. Return the resourceVersion of the object."""
        if not reply.ok:
            return ""
        if differs(finding, map_at(reply.body, "status")):
            self.log_error(f"{id_of(entry.key)}: the API server stored another status than the one written")
        if self.events is not None:
            before = stored_conditions(entry.status)
            for condition in finding.conditions:
                self.events.changed(entry, before, condition)
        return stored_version(reply)
