"""A report as the API server stores it, or a file has it, read as ``analysis.audit.workload_report`` writes it. Anybody may have written
it: nothing in it can make the reading fail, and what can't be read is counted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from analysis.audit.outcomes import FINDINGS, Finding
from analysis.audit.workload_report import KIND, LABEL, LEFT_OUT, PLAIN_KIND, SOURCE
from kube.tree import map_at, maps_in, text_of
from policies.verdict import Mode

KINDS = (KIND, PLAIN_KIND, f"Cluster{KIND}", f"Cluster{PLAIN_KIND}")
"""Kinds of report; Berth writes none of the last two."""
_COUNT = re.compile(r"[0-9]{1,40}")
"""A pod may ask for 2**63 devices, and get none; Python denies to read numbers of more than 4,300 digits."""
_USD = re.compile(r"[0-9]{1,40}(\.[0-9]{1,4})?")
_MODES: Mapping[str, Mode] = {mode: mode for mode in get_args(Mode)}
_FINDINGS: Mapping[str, Finding] = {finding: finding for finding in FINDINGS}


class StoredResult(NamedTuple):
    """One finding on pods of a workload."""

    finding: Finding
    policies: tuple[str, ...]
    """None for an annotation that names what does not exist, which is denied without any."""
    mode: Mode | None
    """None: not one of the three."""
    codes: tuple[str, ...]
    pods: int
    templates: int
    """Of a workload without pods."""
    gpus: int
    usd: float | None
    """An hour; None if it is not known."""
    patch: str
    patch_left_out: bool
    message: str
    raw: Mapping[str, Any]
    """As it is stored."""


class StoredReport(NamedTuple):
    """The findings on one workload."""

    own_name: str
    namespace: str
    kind: str
    """Of the workload; ``Namespace`` of pods that nobody owns."""
    name: str
    results: tuple[StoredResult, ...]
    left_out: int
    """Results for which there was no room, at least."""
    damaged: int
    """Results of which no sense can be made."""


def is_ours(report: Mapping[str, Any]) -> bool:
    """Return True if the report says that Berth wrote it."""
    return text_of(map_at(report, "metadata", "labels").get(LABEL)) == SOURCE or text_of(report.get("source")) == SOURCE


def stored_report(report: Mapping[str, Any]) -> StoredReport:
    """Read one report."""
    metadata, scope, given = map_at(report, "metadata"), map_at(report, "scope"), report.get("results")
    results = list(maps_in(given))
    found = [one for one in map(_result, results) if one is not None]
    all_given = len(given) if isinstance(given, list) else int(given is not None)
    return StoredReport(
        own_name=text_of(metadata.get("name")),
        namespace=text_of(metadata.get("namespace")),
        kind=text_of(scope.get("kind")),
        name=text_of(scope.get("name")),
        results=tuple(found),
        left_out=_left_out(map_at(metadata, "annotations")),
        damaged=all_given - len(found),
    )


def _left_out(annotations: Mapping[str, Any]) -> int:
    if LEFT_OUT not in annotations:
        return 0
    return max(1, _count(annotations[LEFT_OUT]) or 0)


def _result(result: Mapping[str, Any]) -> StoredResult | None:
    properties = map_at(result, "properties")
    finding, policies = _FINDINGS.get(text_of(properties.get("finding"))), _listed(result.get("policy"))
    pods, templates, gpus = (_count(properties.get(name, "0")) for name in ("pods", "templates", "gpus"))
    usd = text_of(properties.get("usdPerHour", ""))
    if (
        finding is None
        or not isinstance(result.get("policy"), str)
        or pods is None
        or templates is None
        or gpus is None
        or (usd and not _USD.fullmatch(usd))
    ):
        return None
    return StoredResult(
        finding=finding,
        policies=policies,
        mode=_MODES.get(text_of(properties.get("mode"))),
        codes=_listed(properties.get("codes")),
        pods=pods,
        templates=templates,
        gpus=gpus,
        usd=float(usd) if usd else None,
        patch=text_of(properties.get("patch")),
        patch_left_out="patchBytes" in properties,
        message=text_of(result.get("message")),
        raw=result,
    )


def _count(value: object) -> int | None:
    text = text_of(value)
    return int(text) if _COUNT.fullmatch(text) else None


def _listed(value: object) -> tuple[str, ...]:
    return tuple(one for one in text_of(value).split(",") if one)
