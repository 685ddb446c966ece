"""The dashboard *Berth / Overview*: what is decided, how fast, by which policies, what it costs, what waits, and what passes unjudged."""

from __future__ import annotations

from tests.deploy.monitoring.panels import Dashboard, Panel, Variable

OURS = 'cluster=~"$cluster", namespace=~"$namespace", job=~"$job"'
CALLS = f"cluster_namespace_job_phase_decision:berth_requests:rate5m{{{OURS}"
BUCKETS = f"cluster_namespace_job_phase_le:berth_request_duration_seconds_bucket:rate5m{{{OURS}"
OUTCOMES = f"cluster_namespace_job_policy_rule_mode_outcome:berth_policy_outcomes:increase1h{{{OURS}"
USD = f"cluster_namespace_job_resource_namespace:berth_admitted_usd_per_hour:increase1h{{{OURS}}}"
GPUS = f"cluster_namespace_job_resource_namespace_model:berth_admitted_gpus:increase1h{{{OURS}}}"
UNJUDGED = 'decision=~"unavailable|shed|failed"'
_EITHER = '{__name__=~"berth_build_info|berth_audit_pods"'
VARIABLES = (
    Variable(name="cluster", label="Cluster", of=f"{_EITHER}}}", all_value=".*"),
    Variable(name="namespace", label="Namespace", of=f'{_EITHER}, cluster=~"$cluster"}}', all_value=".*"),
    Variable(name="job", label="Job", of=f'{_EITHER}, cluster=~"$cluster", namespace=~"$namespace"}}'),
)
"""Of all that is Berth's, the audit too. A Prometheus of one's own may give targets no namespace and no cluster: all is then the empty "
"one."""
SLOW = ((None, "green"), (0.1, "yellow"), (0.5, "red"))


def _quantile(quantile: float, phase: str = "") -> str:
    return f"histogram_quantile({quantile}, sum by (phase, le) ({BUCKETS}{phase}}}))"


GLANCE = (
    Panel(
        title="Replicas",
        description="Replicas that Prometheus can read. If the Deployment has more, some can't be reached or were just replaced.",
        unit="short",
        queries=((f"count(berth_build_info{{{OURS}}})", ""),),
        kind="stat",
        width=4,
        height=4,
        steps=((None, "red"), (1, "yellow"), (2, "green")),
    ),
    Panel(
        title="Calls per second",
        description="Reviews from the API servers: up to two for each GPU pod, and one for each workload with GPUs.",
        unit="reqps",
        queries=((f"sum({CALLS}}})", ""),),
        kind="stat",
        width=4,
        height=4,
    ),
    Panel(
        title="Pods denied",
        description="Share of the GPU pods of the last hour that a policy denied. A jump means that a policy was just enforced or that one "
        "workload keeps retrying.",
        unit="percentunit",
        queries=(
            (f'sum(increase(berth_pods_total{{{OURS}, decision="denied"}}[1h])) / sum(increase(berth_pods_total{{{OURS}}}[1h]))', ""),
        ),
        kind="stat",
        width=4,
        height=4,
        steps=((None, "green"), (0.2, "yellow"), (0.5, "red")),
    ),
    Panel(
        title="Calls without a decision, share",
        description="Share of calls that ended as unavailable, shed or failed. Investigate if it stays above zero for minutes: then the API"
        " server denies pods or admits them unevaluated, depending on failurePolicy.",
        unit="percentunit",
        queries=((f"sum({CALLS}, {UNJUDGED}}}) / sum({CALLS}}})", ""),),
        kind="stat",
        width=4,
        height=4,
        steps=((None, "green"), (0.001, "yellow"), (0.05, "red")),
    ),
    Panel(
        title="Latency of /mutate, 99th percentile",
        description="99% of /mutate calls are answered within this time. Some milliseconds are normal; the API server gives up after 5 s.",
        unit="s",
        queries=((_quantile(0.99, ', phase="mutate"'), ""),),
        kind="stat",
        width=4,
        height=4,
        steps=SLOW,
    ),
    Panel(
        title="Active policies",
        description="By the mode that --max-mode leaves them, on one replica. All in Audit: nothing is mutated or denied.",
        unit="short",
        queries=((f"sum by (mode) (max by (kind, mode) (berth_policies{{{OURS}}}))", "{{mode}}"),),
        kind="stat",
        width=4,
        height=4,
    ),
)
DECISIONS = (
    Panel(
        title="Calls by decision",
        description="patched: edits were added. admitted: unchanged. denied: by a policy. unmatched: no policy matches. restored: an "
        "update keeps what policies wrote. passed: no accelerator. advised: a workload. rejected: not a review. unavailable, shed, "
        "failed: no decision, see the last row.",
        unit="reqps",
        queries=((f"sum by (decision) ({CALLS}}})", "{{decision}}"),),
        stacked=True,
    ),
    Panel(
        title="GPU pods created and denied",
        description="Each pod once. unmatched pods are admitted because no policy matches. If there are many, a namespace may not be "
        "covered.",
        unit="reqps",
        queries=(
            (f"sum by (decision) (rate(berth_pods_total{{{OURS}}}[$__rate_interval]))", "{{decision}}"),
            (f"sum(rate(berth_unmatched_pods_total{{{OURS}}}[$__rate_interval]))", "unmatched"),
        ),
    ),
    Panel(
        title="Latency, median, by phase",
        description="50% of calls are answered within this time, including their body. Every GPU pod waits for mutate and validate.",
        unit="s",
        queries=((_quantile(0.5), "{{phase}}"),),
    ),
    Panel(
        title="Latency, 99th percentile, by phase",
        description="99% of calls are answered within this time. Buckets end at 5 s, when the API server gives up, so 5 s may mean more.",
        unit="s",
        queries=((_quantile(0.99), "{{phase}}"),),
        steps=SLOW,
    ),
)
POLICIES = (
    Panel(
        title="Denials by policy and rule, last hour",
        description="Reviews that a policy in Enforce denied, by rule. A retried pod counts again.",
        unit="short",
        queries=((f'sum by (policy, rule) ({OUTCOMES}, outcome="denied"}}) > 0', "{{policy}} {{rule}}"),),
        stacked=True,
    ),
    Panel(
        title="Edits by policy and rule, last hour",
        description="Reviews in which a policy in Enforce edited the object. A pod can count twice, because the API server may call /mutate"
        " again.",
        unit="short",
        queries=((f'sum by (policy, rule) ({OUTCOMES}, outcome="edited"}}) > 0', "{{policy}} {{rule}}"),),
        stacked=True,
    ),
    Panel(
        title="Would deny, by policy, last hour",
        description="Denials that policies in Audit or Warn would have made. Check this before you enforce one.",
        unit="short",
        queries=((f'sum by (policy, mode) ({OUTCOMES}, outcome="would_deny"}}) > 0', "{{policy}} ({{mode}})"),),
        stacked=True,
    ),
    Panel(
        title="Would change, by policy, last hour",
        description="Edits that policies in Audit or Warn would have made.",
        unit="short",
        queries=((f'sum by (policy, mode) ({OUTCOMES}, outcome="would_edit"}}) > 0', "{{policy}} ({{mode}})"),),
        stacked=True,
    ),
    Panel(
        title="Not applied, by policy and rule, last hour",
        description="skipped: a default or a requirement did not apply because of what the pod is or requests. inexpressible: the platform "
        "can't express it. If one policy has many, it does not have its intended effect.",
        unit="short",
        queries=(
            (f'sum by (policy, rule, outcome) ({OUTCOMES}, outcome=~"skipped|inexpressible"}}) > 0', "{{policy}} {{rule}} {{outcome}}"),
        ),
        stacked=True,
    ),
    Panel(
        title="Warnings by code",
        description="Warnings that Berth sent to users, by code. docs/codes.md explains each.",
        unit="reqps",
        queries=((f"sum by (code) (rate(berth_remarks_total{{{OURS}}}[$__rate_interval])) > 0", "{{code}}"),),
        stacked=True,
    ),
)
MONEY = (
    Panel(
        title="Admitted cost in USD per hour, by namespace",
        description="Hourly cost of the GPU pods admitted in the last hour, at the catalog's indicative prices on the cheapest allowed "
        "machines. Nothing is subtracted when a pod ends, so this is not the cost of what runs now.",
        unit="currencyUSD",
        queries=((f"sum by (resource_namespace) ({USD})", "{{resource_namespace}}"),),
        stacked=True,
    ),
    Panel(
        title="GPUs admitted, by model",
        description="GPUs of the pods admitted in the last hour; a slice counts as its part. The model if the placement leaves only one, "
        "else the family, else any. A large share of any means that pods do not select a model.",
        unit="short",
        queries=((f"sum by (model) ({GPUS})", "{{model}}"),),
        stacked=True,
    ),
    Panel(
        title="GPUs admitted, by namespace and model, last hour",
        description="The same as a table. (other) stands for unknown namespaces and for those beyond the first 300.",
        unit="short",
        queries=((f"sort_desc(sum by (resource_namespace, model) ({GPUS}) > 0)", ""),),
        kind="table",
        width=24,
        decimals=1,
    ),
)
WAITING = (
    Panel(
        title="Pods waiting, by reason",
        description="GPU pods without a node. capacity, gated, scheduler and claims need no change of the pod. For taint, label,"
        " resource, machines, limits and static, `berth why pod/NAME` shows the fix. The audit measures this.",
        unit="short",
        queries=((f"max by (cluster, namespace, reason) (berth_pods_waiting{{{OURS}}}) > 0", "{{reason}}"),),
        stacked=True,
    ),
    Panel(
        title="Existing pods that policies would change or deny",
        description="would-change, would-deny: by policies in Audit or Warn. not-as-enforced: created while Berth was down or before the "
        "policy. no-longer-fits: enforced policies would deny it now.",
        unit="short",
        queries=((f"max by (cluster, namespace, finding) (berth_audit_findings{{{OURS}}})", "{{finding}}"),),
    ),
)
OPEN = (
    Panel(
        title="Calls without a decision",
        description="unavailable: no policies are loaded yet; the API server retries. shed: a replica is behind and sends calls to the "
        "others. failed: an error in Berth, see event=failed in its log.",
        unit="reqps",
        queries=((f"sum by (phase, decision) ({CALLS}, {UNJUDGED}}})", "{{phase}} {{decision}}"),),
        width=8,
    ),
    Panel(
        title="Admitted unevaluated (API server)",
        description="Objects that the API server admitted because Berth did not answer a webhook with failurePolicy: Ignore. No guardrail "
        "applied to them. Needs a Prometheus that reads kube-apiserver; no data means none since it started.",
        unit="reqps",
        queries=(
            (
                'sum by (name) (rate(apiserver_admission_webhook_fail_open_count{cluster=~"$cluster", '
                'name=~".+[.]berth[.]dev"}[$__rate_interval]))',
                "{{name}}",
            ),
        ),
        width=8,
        steps=((None, "red"),),
    ),
    Panel(
        title="Denied because Berth did not answer (API server)",
        description="Objects that the API server denied because Berth did not answer a webhook with failurePolicy: Fail. Controllers retry."
        " Needs a Prometheus that reads kube-apiserver; no data means none since it started.",
        unit="reqps",
        queries=(
            (
                'sum by (name) (rate(apiserver_admission_webhook_rejection_count{cluster=~"$cluster", name=~".+[.]berth[.]dev", '
                'error_type="calling_webhook_error"}[$__rate_interval]))',
                "{{name}}",
            ),
        ),
        width=8,
    ),
)
DASHBOARD = Dashboard(
    uid="berth-overview",
    title="Berth / Overview",
    description="Decisions about GPU pods: how many, how fast, by which policies, their cost, waiting pods, and calls without a decision.",
    variables=VARIABLES,
    links=(("Replica health", "berth-replica-health"),),
    rows=(
        ("At a glance", GLANCE),
        ("Decisions", DECISIONS),
        ("Policies", POLICIES),
        ("GPUs and cost", MONEY),
        ("Waiting and existing pods", WAITING),
        ("Calls without a decision", OPEN),
    ),
)
