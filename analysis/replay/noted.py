"""What was decided of a pod then, as the API server noted it in an audit event, or as a review's answer has it: text, which
is parsed where it is compared, and is equal for the pods of a Job."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from analysis.admission_preview import AdmittedPod
from analysis.replay import recorded
from analysis.replay.decision import RecordedDecision
from analysis.reviews import audit_annotations
from kube.tree import Raw, map_at, text_of
from registration.configurations import DOMAIN

_PATCH, _MUTATION = "patch.webhook.admission.k8s.io/", "mutation.webhook.admission.k8s.io/"
_FAILED_OPEN = ("failed-open.mutation.webhook.admission.k8s.io/", "failed-open.validation.webhook.admission.k8s.io/")
"""Annotations of the API server itself (apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go)."""
_WOULD, _DENIED = f"/{audit_annotations.WOULD}", f"/{audit_annotations.DENIED}"
_OURS, _QUOTED = f".{DOMAIN}", f'.{DOMAIN}"'
"""The end of the names of Berth's webhooks."""


class Then(NamedTuple):
    """What was decided then, as text: equal for the pods of a Job."""

    patches: tuple[str | bytes, ...]
    audit_outcomes: tuple[str, ...] = ()
    denied: tuple[str, ...] | None = None
    evidence: bool = True
    """False if Berth's own annotations were not to be recorded."""
    away: bool = False
    """True if the API server went on without an answer of Berth's."""

    @property
    def size(self) -> int:
        """The characters of it."""
        return sum(map(len, (*self.patches, *self.audit_outcomes, *(self.denied or ()))))

    def same_as(self, judged: AdmittedPod) -> bool:
        """Return whether Berth recorded exactly what it would record of this, as it does where nothing has changed: a cheap
        look before both are compared as data. Denials are left to that."""
        if self.denied is not None or judged.violations or not self.evidence or len(self.patches) > 1:
            return False
        patch = operations(self.patches[0]) if self.patches else []
        if patch != list(judged.mutate.patch):
            return False
        audit_outcomes = audit_annotations.audit_annotations(judged.mutate).get(audit_annotations.WOULD)
        return self.audit_outcomes == (() if audit_outcomes is None else (audit_outcomes,))

    def decision(self) -> RecordedDecision:
        """Return it as data; what cannot be read of it says nothing."""
        denied = None if self.denied is None else [one for text in self.denied for one in _list(text)]
        audit_outcomes = [one for text in self.audit_outcomes for one in _list(text)]
        return recorded.read_decision(
            patches=[operations(text) for text in self.patches], audit_outcomes=audit_outcomes, denied=denied, evidence=self.evidence
        )


class Noted(NamedTuple):
    """What the API server noted of the webhooks that it called."""

    then: Then | None
    before: tuple[str, ...]
    """The patches of webhooks that were called before Berth's."""
    every: tuple[str, ...]
    """The patches of all, in the order of the calls."""


def noted(annotations: Mapping[Any, Any]) -> Noted:
    audit_outcomes: list[str] = []
    denied: list[str] = []
    patches: list[tuple[tuple[int, int], str, str]] = []
    called: list[tuple[int, int]] = []
    away = asked = False
    for key, value in annotations.items():
        if not isinstance(key, str) or not isinstance(value, str):
            continue
        if key.startswith(_PATCH):
            patches.append((_order(key), _webhook(value), value))
        elif key.startswith(_MUTATION):
            if _QUOTED in value:
                called.append(_order(key))
        elif key.startswith(_FAILED_OPEN):
            away = away or value.endswith(_OURS)
        elif key.partition("/")[0].endswith(_OURS):
            asked = True
            if key.endswith(_WOULD):
                audit_outcomes.append(value)
            elif key.endswith(_DENIED):
                denied.append(value)
    patches.sort()
    first = min((*called, *(order for order, webhook, _ in patches if webhook.endswith(_OURS))), default=(1, 0))
    before = tuple(text for order, webhook, text in patches if order < first and not webhook.endswith(_OURS))
    then = None
    if asked or away or called:
        ours = tuple(text for _, webhook, text in patches if webhook.endswith(_OURS))
        then = Then(ours, tuple(audit_outcomes), tuple(denied) if denied else None, evidence=not away, away=away)
    return Noted(then, before, tuple(text for _, _, text in patches))


def answered(response: Raw) -> Then | None:
    """Return what an answer says. It does not say whether it is that of /mutate: without a patch or annotations of Berth's
    nothing is known of what policies in Audit would have done."""
    if not isinstance(response.get("allowed"), bool):
        return None
    texts = map_at(response, "auditAnnotations")
    audit_outcomes, denied = (texts.get(key) for key in (audit_annotations.WOULD, audit_annotations.DENIED))
    patch = response.get("patch")
    try:
        patches = (base64.b64decode(patch, validate=True),) if isinstance(patch, str) else ()
    except (binascii.Error, ValueError):
        return None
    reasons = None if response["allowed"] else (denied,) if isinstance(denied, str) else ()
    known = isinstance(audit_outcomes, str) or bool(patches) or bool(reasons)
    return Then(patches, (audit_outcomes,) if isinstance(audit_outcomes, str) else (), reasons, evidence=known)


def _webhook(text: str) -> str:
    """Return the webhook of a patch's annotation."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _webhook_in(text)


def _webhook_in(text: str) -> str:
    return text_of(_map(text).get("webhook"))


_LONGEST_REMEMBERED = 16 * 2**10
_remembered = functools.lru_cache(maxsize=512)(_webhook_in)
"""The pods of a Job have the same patch, which is parsed once."""


def _order(key: str) -> tuple[int, int]:
    """Return when a webhook was called: (round, index)."""
    match key.rpartition("/")[2].split("_"):
        case ["round", turn, "index", index] if turn.isdecimal() and index.isdecimal() and len(turn) + len(index) < 9:
            return int(turn), int(index)
    return 0, 0


def operations(text: str | bytes) -> list[object]:
    """Return the operations of a patch: of the API server's annotation, or of an answer's own text."""
    found = _parsed(text)
    patch = found.get("patch") if isinstance(found, dict) else found
    return patch if isinstance(patch, list) else []


def _map(text: str) -> Mapping[str, Any]:
    found = _parsed(text)
    return found if isinstance(found, dict) else {}


def _list(text: str) -> list[object]:
    found = _parsed(text)
    return found if isinstance(found, list) else []


def _parsed(text: str | bytes) -> object:
    try:
        return orjson.loads(text)
    except ValueError:
        return None
