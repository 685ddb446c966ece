"""The status writes of each object, and the decision which objects to write again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from analysis.conditions import ObjectStatus
from cluster.status.computation import WorkSlice
from cluster.status.patch import differs
from policies.state.objects import Key, ObjectEntry


@dataclass(slots=True)
class History:
    """The writes of one object."""

    uid: str
    looked_at: tuple[str, ObjectStatus | None] = ("", None)
    """(resourceVersion, finding) for which nothing is to be done: a write without changes keeps the
    resourceVersion."""
    wrote: ObjectStatus | None = None
    at: float = 0.0
    """The time at which ``wrote`` was written, or tried in vain."""
    since: float = 0.0
    """The time at which the stored status was first found to differ; 0 if it does not."""

    def try_later(self, finding: ObjectStatus, now: float) -> None:
        """Record a failed write, to be tried again in a minute.

        The next turn begins with another object: otherwise one object could keep all others from being
        written.
        """
        self.wrote, self.at, self.looked_at = finding, now, ("", None)


@dataclass(slots=True)
class WriteHistory:
    """The writes of all objects. ``fought``: seconds before the same is written to the same object again."""

    clock: Callable[[], float]
    fought: float
    _of: dict[Key, History] = field(default_factory=dict)

    def __getitem__(self, key: Key) -> History:
        return self._of[key]

    def forget(self) -> None:
        """Forget all writes, as another replica may have written in the meantime."""
        self._of.clear()

    def keep_only(self, keys: Iterable[Key]) -> None:
        """Forget all other objects, which are gone."""
        for key in self._of.keys() - set(keys):
            del self._of[key]

    async def due(self, entries: Mapping[Key, ObjectEntry], found: Mapping[Key, ObjectStatus]) -> list[Key]:
        """Return the objects whose status is to be written, those that wait longest first."""
        due: list[tuple[float, Key]] = []
        turn = WorkSlice()
        for key, finding in found.items():
            if self.is_due(entries.get(key), finding):
                due.append((self._of[key].since, key))
            await turn.over()
        return [key for _, key in sorted(due)]

    def is_due(self, entry: ObjectEntry | None, finding: ObjectStatus) -> bool:
        """Return whether to write the finding to the object.

        That is so if the object is still the one of the finding (uid and generation), its status differs, and
        the same was not written to it within ``fought`` seconds.
        """
        if entry is None or entry.uid != finding.uid or entry.generation != finding.generation:
            return False
        history = self._of.get(entry.key)
        if history is None or history.uid != entry.uid:
            history = self._of[entry.key] = History(entry.uid)
        version, looked_at = history.looked_at
        if version == entry.resource_version and finding == looked_at:
            return False
        if not differs(finding, entry.status):
            history.looked_at, history.since = (entry.resource_version, finding), 0.0
            return False
        history.since = history.since or self.clock()
        return not (finding == history.wrote and self.clock() - history.at < self.fought)
