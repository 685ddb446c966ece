"""Find workloads that end for good with the first pod that a spot interruption ends.

Sources: Kubernetes pkg/controller/job (a disrupted pod counts towards ``backoffLimit`` unless a rule of ``podFailurePolicy`` ignores it;
the first rule that matches decides), JobSet pkg/controllers/failure_policy.go (a JobSet restarts failed Jobs up to ``maxRestarts``),
training-operator pkg/controller.v1/common/job.go (``runPolicy.backoffLimit``), Argo workflow/controller/operator.go (without a
``retryStrategy`` a failed pod fails its node).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog import Workload
from kube.tree import Path, map_at, maps_in, value_at
from policies.request import SingleRun

_DISRUPTED = "DisruptionTarget"
_SIGNALS = (137, 143)
"""Exit codes of a container that the kubelet ends."""
_RESTARTS = frozenset({"RestartJobSetAndIgnoreMaxRestarts", "RecreateJob"})
_ARGO = frozenset({"Workflow", "CronWorkflow", "WorkflowTemplate", "ClusterWorkflowTemplate"})


def find_single_run(value: Mapping[str, Any], template: Path, workload: Workload) -> SingleRun | None:
    """Return the field because of which an interruption ends the run; None if there is none, or another level runs it again.

    ``value``: the workload. ``template``: the path of a pod template in it.
    """
    if workload.service:
        return None
    if workload.name in _ARGO:
        return _of_argo(value, template)
    single = None
    for length in range(len(template) - 1, -1, -1):
        here = map_at(value_at(value, template[:length], {}))
        if single is None:
            single = _of_job(here, template[:length])
        elif _restarts(here):
            single = None
    return single


def _of_job(job: Mapping[Any, Any], at: Path) -> SingleRun | None:
    """Return the field of one level that ends the run: of a Job's spec, or of a training job's."""
    rule = _deciding_rule(job)
    if rule == "FailJob":
        return SingleRun((*at, "podFailurePolicy"), "failing rule")
    for path in (("backoffLimit",), ("backoffLimitPerIndex",), ("runPolicy", "backoffLimit")):
        limit = value_at(job, path)
        if limit == 0 and not isinstance(limit, bool) and rule != "Ignore":
            return SingleRun((*at, *path), "no retry")
    return None


def _deciding_rule(job: Mapping[Any, Any]) -> str:
    """Return the action of the first rule for a pod that is disrupted, "" if none matches."""
    for rule in maps_in(map_at(job, "podFailurePolicy").get("rules")):
        of_conditions = (condition.get("type") == _DISRUPTED for condition in maps_in(rule.get("onPodConditions")))
        if any(of_conditions) or _matches_signal(map_at(rule, "onExitCodes")):
            return str(rule.get("action"))
    return ""


def _matches_signal(codes: Mapping[Any, Any]) -> bool:
    """Return whether a rule matches the exit code of a process that does not handle its signal."""
    values = codes.get("values")
    if not isinstance(values, list):
        return False
    match codes.get("operator"):
        case "In":
            return any(code in values for code in _SIGNALS)
        case "NotIn":
            return not all(code in values for code in _SIGNALS)
    return False


def _restarts(level: Mapping[Any, Any]) -> bool:
    """Return whether this level starts failed Jobs again."""
    policy = map_at(level, "failurePolicy")
    restarts = policy.get("maxRestarts")
    return (isinstance(restarts, int) and restarts > 0) or any(rule.get("action") in _RESTARTS for rule in maps_in(policy.get("rules")))


def _of_argo(value: Mapping[str, Any], template: Path) -> SingleRun | None:
    """Return the missing ``retryStrategy`` of a template of Argo, or its limit of 0."""
    spec = template[: next((at for at, step in enumerate(template) if step == "templates"), 0)]
    for strategy in ((*template, "retryStrategy"), (*spec, "templateDefaults", "retryStrategy"), (*spec, "retryStrategy")):
        retries = value_at(value, strategy)
        if isinstance(retries, dict):
            return SingleRun((*strategy, "limit"), "no retry") if str(retries.get("limit")) == "0" else None
    return SingleRun((*template, "retryStrategy"), "no strategy")
