"""An explanation as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from analysis.admission.manifest_results import AuthorWarning
from analysis.conditions.server_options import platforms_value
from analysis.why import queued, sentences
from analysis.why.explanation import Explanation, PlaceKind, Remedy
from kube.scheduling import Blocker
from kube.tree import dotted
from policies.verdict import Violation


def format_explanation(found: Explanation) -> str:
    """Return the whole explanation; odd characters are escaped."""
    return json.dumps(explanation_value(found), indent=2) + "\n"


def explanation_value(found: Explanation) -> dict[str, Any]:
    """Return it as maps and lists; fields that say nothing are left out."""
    every = {
        "object": found.title,
        "namespace": found.namespace,
        "state": found.state,
        "pod": found.pod,
        "phases": dict(found.phases),
        "created": found.since,
        "node": found.node,
        "nominatedNode": found.nominated,
        "schedulingGates": [gate._asdict() for gate in found.gates],
        "suspended": found.suspended,
        "queue": None if found.queue is None else queued.position_value(found.queue),
        "warnings": [_warning(warning) for warning in found.warnings],
        "told": [one._asdict() for one in found.told],
        "outlook": found.outlook,
        "pods": found.pods if found.pods > 1 else None,
        "podsAtOnce": None if found.room is None else found.room.pods,
        "roomForPods": None if found.room is None else found.room.now,
        "roomForPodsWhenEmpty": None if found.room is None else found.room.empty,
        "places": [_where(place, found) for place in found.where],
        "notChecked": list(found.unchecked),
        "refused": [refusal._asdict() | {"path": dotted(refusal.path), "passing": refusal.passing} for refusal in found.refusals],
        "rollingUpdate": None if found.rollout is None else found.rollout._asdict() | {"holders": list(found.rollout.holders)},
        "remedy": None if found.remedy is None else _remedy(found.remedy),
        "denials": [_violation(one) for one in found.denials],
        "policies": list(found.policies),
        "wrote": [{"by": one["by"], "rule": one["rule"], "path": one["path"]} for one in found.wrote],
        "editsNotRecorded": found.summary,
        "would": [
            {
                "policy": one.policy,
                "mode": one.mode,
                "patch": list(one.patch),
                "denials": [_violation(violation) for violation in one.violations],
            }
            for one in found.audit_outcomes
        ],
        "lacks": sentences.patch(found.missing),
        "deniedToday": [_violation(one) for one in found.outgrown],
        "otherWorkloads": dict(found.beside),
        "notKnown": list(found.unread),
        "platforms": platforms_value(found.platforms),
    }
    return {key: one for key, one in every.items() if one not in (None, "", [], {}, 0, False)}


def _warning(warning: AuthorWarning) -> dict[str, Any]:
    template = {"template": dotted(warning.template)} if warning.template else {}
    return {"code": warning.remark.code, "text": warning.remark.text_at(warning.place)} | template


def _where(place: PlaceKind, explanation: Explanation) -> dict[str, Any]:
    reasons = [
        _blocker(blocker) | {"nodes": count} | ({"policies": list(policies)} if (policies := explanation.requiring(blocker)) else {})
        for blocker, count in place.blockers
    ]
    kind = {"nodePool": place.title} if place.pool else {"kind": place.title, "nodes": list(place.names)}
    return kind | {"outlook": place.outlook, "blockers": reasons}


def _blocker(one: Blocker) -> dict[str, Any]:
    every = one._asdict() | {"values": list(one.values), "path": dotted(one.path), "reason": sentences.blocker(one)}
    return {key: found for key, found in every.items() if found not in ("", [], None) and (key not in ("need", "have") or one.need)}


def _remedy(one: Remedy) -> dict[str, Any]:
    fix = one.found.fix
    return {
        "steps": None if fix is None else one.steps,
        "thenAdmitted": one.admits,
        "anewNeedsNone": one.anew,
        "object": {"kind": one.kind, "name": one.name} if one.kind else None,
        "patch": sentences.patch(one.edits),
        "patchOfOtherTemplates": sentences.patch(one.edits_beside),
        "runsOn": list(one.runs_on),
        "buys": {pool: [{"machine": name, "usdPerHour": usd} for name, usd in machines] for pool, machines in one.buys.items()},
        "deniedByPolicies": [_violation(violation) for violation in one.found.forbidden],
    }


def _violation(one: Violation) -> dict[str, Any]:
    return {
        "code": one.code,
        "policies": list(one.policies),
        "fields": [{"policy": policy, "field": name} for policy, name in one.fields],
        "fact": one.fact_at(dotted),
        "fix": one.fix_at(dotted),
    }
