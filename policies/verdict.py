"""The parts of a decision: edits, violations, remarks, and the verdict that holds them."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from kube.tree import Path, dotted
from policies import messages
from policies.fixes import Fix
from policies.messages import Phrase, Place

Field = tuple[str, str]
"""A field of a policy: ``("ClusterGPUPolicy/training", "spec.require.families")``."""


def at_field(field: str, policies: Iterable[str]) -> tuple[Field, ...]:
    """Return one field of each of these policies."""
    return tuple((policy, field) for policy in policies)


Mode = Literal["Audit", "Warn", "Enforce"]
MODES: tuple[Mode, ...] = ("Audit", "Warn", "Enforce")
"""Weakest first, so that a cap is the smaller index."""


class Edit(NamedTuple):
    """One change in the smallest place. ``kube.tree.TreePatch`` creates the parents that are missing.

    ``op`` is ``add`` (sets a key, inserts before an index, appends at ``-``), ``replace`` or ``remove``. It is
    a tuple because seven are made in an ordinary review, in less than half the time of a frozen dataclass.
    """

    op: Literal["add", "replace", "remove"]
    path: Path
    rule: str
    policies: tuple[str, ...]
    """The policies that asked for it, as ``ClusterGPUPolicy/training`` or ``GPUPolicy/ml-team/own``,
    sorted."""
    value: Any = None


FIRST_READ = 200
"""The characters within which code, fact and fix should fit: what a Job's event or a narrow terminal shows
(``docs/laws.md``, law 9: "messages name the fix")."""
MOST_FOUND = 50
"""The most violations of one pod that are reported: an answer holds twenty, and a pod can be made that
each of a hundred policies forbids hundreds of times. It is denied all the same."""
MOST_AUDITED = 16
"""Audit and Warn policies evaluated per pod: each costs a whole evaluation; the rest are only counted
(``docs/laws.md``, law 6: "audit runs the same code")."""
LARGE = 30
"""Items (``policies.work_budget``) of the largest pod on which all sixteen are tried: six containers with
a GPU and a term of six."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Why a pod is denied, as data: the sentence is made from the code's row in ``policies.messages``
    when it is shown."""

    code: str
    """Stable, ``BERTH-104``; ``docs/codes.md`` has a section for each."""
    found: Phrase
    """The fact, with its value and path: ``container "c": nvidia.com/gpu request 1 is not its limit 2``."""
    advice: Phrase
    """The fix to type next: ``set spec.containers[0].resources.requests["nvidia.com/gpu"] to 2``."""
    more: tuple[Phrase, ...] = ()
    """Further details: the other side, nearest names, all values."""
    rule: str
    policies: tuple[str, ...] = ()
    """Sorted; those of ``fields`` if none are given."""
    path: Path = field(default=(), compare=False)
    """The value of the pod that it is about; a remark may be about the same."""
    fields: tuple[Field, ...] = field(default=(), compare=False)
    """of the policies that it is about"""
    fixes: tuple[Fix, ...] = field(default=(), compare=False)
    """What the author may change instead, the gentlest first."""

    def __post_init__(self) -> None:
        _name_policies(self)

    @property
    def key(self) -> tuple[str, Phrase]:
        """The identity of the violation: two with the same key are one, whoever asks and whatever is
        advised."""
        return self.code, self.found

    @property
    def fact(self) -> str:
        """The fact, with the paths of the pod."""
        return self.fact_at(dotted)

    @property
    def fix(self) -> str:
        """The fix, with the paths of the pod."""
        return self.fix_at(dotted)

    @property
    def detail(self) -> str:
        """The further details; "" if there are none."""
        return self.detail_at(dotted)

    def fact_at(self, place: Place) -> str:
        """Return the fact, with paths as ``place`` writes them."""
        return messages.fill_phrase(self.code, self.found, place)

    def fix_at(self, place: Place) -> str:
        """Return the fix, in the shorter form if the table has one and the paths of the pod make the other
        too long."""
        shorter = messages.shorter(self.code, self.advice)
        if shorter is not None and len(f"{self.code}: {self.fact}; {messages.fill_phrase(self.code, self.advice, dotted)}.") > FIRST_READ:
            return messages.fill_phrase(self.code, shorter, place)
        return messages.fill_phrase(self.code, self.advice, place)

    def detail_at(self, place: Place) -> str:
        """Return the further details, with paths as ``place`` writes them."""
        return " ".join(messages.fill_phrase(self.code, one, place) for one in self.more)

    def text_at(self, place: Place) -> str:
        """Return the whole sentence: code, fact and fix first; the policies and the details after."""
        sources = f" (required by {', '.join(self.policies)})" if self.policies else ""
        detail = f" {self.detail_at(place)}" if self.more else ""
        return f"{self.code}: {self.fact_at(place)}; {self.fix_at(place)}.{detail}{sources}"

    def __str__(self) -> str:
        return self.text_at(dotted)


@dataclass(frozen=True, kw_only=True)
class Remark:
    """A message that does not deny, as data: a default that was clipped or skipped, an unknown value, a
    cap."""

    code: str
    found: Phrase
    rule: str = ""
    policies: tuple[str, ...] = ()
    """Sorted; those of ``fields`` if none are given."""
    path: Path = field(default=(), compare=False)
    """the value of the pod that it is about: the author's own annotation, or a label that is not known"""
    fields: tuple[Field, ...] = field(default=(), compare=False)
    """of the policies that it is about"""
    fixes: tuple[Fix, ...] = field(default=(), compare=False)
    """What the author most likely meant, where that is known: the nearest value of a misspelt one."""

    def __post_init__(self) -> None:
        _name_policies(self)

    @functools.cached_property
    def text(self) -> str:
        """The sentence without its code, with the paths of the pod: once for the answer and the log."""
        return self.text_at(dotted)

    def text_at(self, place: Place) -> str:
        """The sentence without its code, with paths as ``place`` writes them."""
        return messages.fill_phrase(self.code, self.found, place)

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


def _name_policies(message: Violation | Remark) -> None:
    """Fill in the policies of a message that names only fields of theirs."""
    if message.fields and not message.policies:
        object.__setattr__(message, "policies", tuple(sorted({policy for policy, _ in message.fields})))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOutcome:
    """The effect that switching one Audit or Warn policy to Enforce would have had on this pod."""

    policy: str
    mode: Mode
    edits: tuple[Edit, ...] = ()
    dropped: tuple[Edit, ...] = ()
    """Edits of policies in Enforce in whose place nothing would then be written: two defaults that differ set
    nothing."""
    violations: tuple[Violation, ...] = ()
    remarks: tuple[Remark, ...] = ()
    patch: tuple[dict[str, Any], ...] = ()
    """The whole patch that Enforce would then give."""


class Holding(NamedTuple):
    """What a pod that is admitted will hold."""

    devices: tuple[tuple[str, float], ...] = ()
    """(model, whole devices at least), each model once, sorted: see ``policies.engine``."""
    usd: float = 0.0
    """What they cost an hour at the least, in USD: devices of which no price is known count nothing."""


NOTHING = Holding()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to one request. ``edits`` come only from policies in Enforce; any violation denies."""

    edits: tuple[Edit, ...] = ()
    violations: tuple[Violation, ...] = ()
    remarks: tuple[Remark, ...] = ()
    audit_outcomes: tuple[AuditOutcome, ...] = ()
    uncounted: int = 0
    """Audit and Warn policies past the sixteenth that were not evaluated (``docs/laws.md``, law 6: "audit runs the same code")."""
    matched: tuple[str, ...] = ()
    """Policies that apply to this pod, sorted. Empty: nothing matched, the pod is allowed and counted."""
    is_evaluated: bool = True
    """False for a pod that asks for no accelerator: nothing was evaluated."""
    patch: tuple[dict[str, Any], ...] = field(default=())
    """RFC 6902 operations for ``edits`` and the ``berth.dev/applied`` annotation, ready for the answer."""
    missing: tuple[tuple[str, str], ...] = ()
    """The (kind, name) of resource claims that do not exist, if the pod is denied because what it asks
    for cannot be counted."""
    holding: Holding = NOTHING
    """What a created pod holds that /validate admits, the last word on it; ``NOTHING`` in all other verdicts."""
