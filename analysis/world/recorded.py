"""Recorded creations of pods, judged under the policies of a world: what a policy in Audit or Warn would have done to them in Enforce."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from analysis.admission_preview import preview_admission
from analysis.audit.stored_pod import widest
from analysis.replay.creations import Creation, creation
from analysis.replay.decision import of_admitted
from catalog import Catalog
from documents.recordings.entries import entries
from documents.recordings.pieces import pieces
from kube.pod import PodError
from policies import work_budget
from policies.document import InputError
from policies.pods.projection import extract
from policies.request import Request
from policies.state.snapshot import Snapshot

MOST = 20_000
"""Creations that differ in what is judged: each takes a third of a millisecond whenever policies change."""
_ABOUT = (b"pods",)


@dataclass(slots=True)
class Replayed:
    """Recorded creations to which one policy applies, in one namespace."""

    pods: int = 0
    changed: int = 0
    denied: int = 0


ByPolicy = Mapping[tuple[str, str], Replayed]
"""(policy, namespace) -> what it would have done."""


class Recorded:
    """The creations of audit logs and recorded reviews, as `berth replay` reads them: those that are alike are held once."""

    def __init__(self, paths: Sequence[str], catalog: Catalog) -> None:
        """Read them. Raises InputError for a file that can't be read, and where there is no creation in any."""
        self._requests: dict[bytes, tuple[Request, int]] = {}
        self.left_out = 0
        """Creations past the ``MOST`` that differ, and those too large to be judged."""
        self.unread = 0
        """Entries that can't be read."""
        reads, known = widest(catalog), set[str]()
        for one in self._creations(paths, catalog):
            if one.identity in known:
                continue
            known |= {one.identity} - {""}
            self._add(one.request, orjson.dumps(extract(one.request.pod, reads), option=orjson.OPT_SORT_KEYS))
        if not self._requests:
            raise InputError(file=", ".join(paths), message="records no creation of a pod with GPUs; run berth replay to see its contents")

    def _add(self, request: Request, judged: bytes) -> None:
        key = orjson.dumps([request.namespace, request.user, request.groups]) + judged
        before = self._requests.get(key)
        if before is not None:
            self._requests[key] = request, before[1] + 1
        elif len(self._requests) < MOST and work_budget.items(request.pod) <= work_budget.MOST:
            self._requests[key] = request, 1
        else:
            self.left_out += 1

    def under(self, snapshot: Snapshot) -> ByPolicy:
        """Return what policies in Audit or Warn would have done, by policy and namespace."""
        found: dict[tuple[str, str], Replayed] = {}
        for request, times in self._requests.values():
            try:
                admitted = preview_admission(request, snapshot.facts_for(request.namespace))
            except PodError:
                continue
            if not admitted.is_evaluated:
                continue
            audit_outcomes = of_admitted(admitted).audit_outcomes or {}
            for policy in admitted.matched:
                one = found.setdefault((policy, request.namespace), Replayed())
                one.pods += times
                if policy in audit_outcomes:
                    one.denied += times if audit_outcomes[policy].codes else 0
                    one.changed += 0 if audit_outcomes[policy].codes else times
        return found

    def _creations(self, paths: Sequence[str], catalog: Catalog) -> Iterator[Creation]:
        for piece in pieces(paths):
            if isinstance(piece, InputError):
                raise piece
            for entry in entries(piece, _ABOUT):
                self.unread += isinstance(entry.unread, InputError)
                made = creation(entry.value, catalog) if entry.value is not None else None
                if isinstance(made, Creation):
                    yield made
