"""An explanation as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

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
        "schedulingGates": list(found.gates),
        "suspended": found.suspended,
        "queue": None if found.queue is None else queued.position_value(found.queue),
        "told": [one._asdict() for one in found.told],
        "outlook": found.outlook,
        "pods": found.pods if found.pods > 1 else None,
        "roomForPods": found.room,
        "roomForPodsWhenEmpty": found.most,
        "places": [_where(one) for one in found.where],
        "notJudged": list(found.unjudged),
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
        "notKnown": list(found.unread),
    }
    return {key: one for key, one in every.items() if one not in (None, "", [], {}, 0, False)}


def _where(one: PlaceKind) -> dict[str, Any]:
    reasons = [_blocker(blocker) | {"nodes": count} for blocker, count in one.blockers]
    kind = {"nodePool": one.title} if one.pool else {"kind": one.title, "nodes": list(one.names)}
    return kind | {"outlook": one.outlook, "blockers": reasons}


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
