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
        description="Replicas whose metrics are read. Fewer than the Deployment has: some can't be reached, or have just been replaced.",
        unit="short",
        queries=((f"count(berth_build_info{{{OURS}}})", ""),),
        kind="stat",
        width=4,
        height=4,
        steps=((None, "red"), (1, "yellow"), (2, "green")),
    ),
    Panel(
        title="Calls a second",
        description="Reviews that the API servers send: up to two for each GPU pod, and one for each workload with GPUs.",
        unit="reqps",
        queries=((f"sum({CALLS}}})", ""),),
        kind="stat",
        width=4,
        height=4,
    ),
    Panel(
        title="Pods denied",
        description="Of the GPU pods of the last hour, the share that a policy denied. A jump follows a policy that was just enforced, "
        "or one "
        "workload that tries again and again.",
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
        title="Calls not judged",
        description="Share of the calls that ended as unavailable, shed or failed. Anything above zero for minutes is to be looked at: "
        "after some "
        "tries the API server denies the pod, or lets it pass unjudged, as the registration says.",
        unit="percentunit",
        queries=((f"sum({CALLS}, {UNJUDGED}}}) / sum({CALLS}}})", ""),),
        kind="stat",
        width=4,
        height=4,
        steps=((None, "green"), (0.001, "yellow"), (0.05, "red")),
    ),
    Panel(
        title="Slowest hundredth of /mutate",
        description="99 of 100 calls of /mutate are answered within this time. Some milliseconds are usual; the API server gives up after "
        "5 s.",
        unit="s",
        queries=((_quantile(0.99, ', phase="mutate"'), ""),),
        kind="stat",
        width=4,
        height=4,
        steps=SLOW,
    ),
    Panel(
        title="Policies in force",
        description="By the mode that --max-mode leaves them, as one replica has them. All in Audit: nothing is changed or denied.",
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
        description="patched: edits were added. admitted: as it came. denied: by a policy. unmatched: no policy is for the pod. passed: "
        "no "
        "accelerator. advised: a workload. rejected: no review. unavailable, shed, failed: not judged, see the last row.",
        unit="reqps",
        queries=((f"sum by (decision) ({CALLS}}})", "{{decision}}"),),
        stacked=True,
    ),
    Panel(
        title="GPU pods created and denied",
        description="Each pod once. unmatched are admitted pods that no policy is for: many of them mean that a namespace was left out.",
        unit="reqps",
        queries=(
            (f"sum by (decision) (rate(berth_pods_total{{{OURS}}}[$__rate_interval]))", "{{decision}}"),
            (f"sum(rate(berth_unmatched_pods_total{{{OURS}}}[$__rate_interval]))", "unmatched"),
        ),
    ),
    Panel(
        title="Latency: the median, by phase",
        description="Half of the calls are answered within this time, their body included. mutate and validate are on the way of every "
        "GPU pod.",
        unit="s",
        queries=((_quantile(0.5), "{{phase}}"),),
    ),
    Panel(
        title="Latency: the slowest hundredth, by phase",
        description="99 of 100 calls are answered within this time. Buckets end at 5 s, when the API server gives up: what shows 5 s may "
        "be more.",
        unit="s",
        queries=((_quantile(0.99), "{{phase}}"),),
        steps=SLOW,
    ),
)
POLICIES = (
    Panel(
        title="Denials by policy and rule, last hour",
        description="Reviews that a policy in Enforce denied, by the rule that found it. A pod that is tried again counts again.",
        unit="short",
        queries=((f'sum by (policy, rule) ({OUTCOMES}, outcome="denied"}}) > 0', "{{policy}} {{rule}}"),),
        stacked=True,
    ),
    Panel(
        title="Edits by policy and rule, last hour",
        description="Reviews in which a policy in Enforce wrote something. Up to two for a pod: the API server may call /mutate again.",
        unit="short",
        queries=((f'sum by (policy, rule) ({OUTCOMES}, outcome="edited"}}) > 0', "{{policy}} {{rule}}"),),
        stacked=True,
    ),
    Panel(
        title="Would deny, by policy, last hour",
        description="What policies in Audit or Warn would have denied. Read it before you enforce one: zero for a week is safe.",
        unit="short",
        queries=((f'sum by (policy, mode) ({OUTCOMES}, outcome="would_deny"}}) > 0', "{{policy}} ({{mode}})"),),
        stacked=True,
    ),
    Panel(
        title="Would change, by policy, last hour",
        description="What policies in Audit or Warn would have written.",
        unit="short",
        queries=((f'sum by (policy, mode) ({OUTCOMES}, outcome="would_edit"}}) > 0', "{{policy}} ({{mode}})"),),
        stacked=True,
    ),
    Panel(
        title="Left out, by policy and rule, last hour",
        description="skipped: a default or a requirement was left out, in whole or in part, for what the pod is or its author wrote. "
        "inexpressible: the platform has no words for it. Many of one policy mean that it does not do what it says.",
        unit="short",
        queries=(
            (f'sum by (policy, rule, outcome) ({OUTCOMES}, outcome=~"skipped|inexpressible"}}) > 0', "{{policy}} {{rule}} {{outcome}}"),
        ),
        stacked=True,
    ),
    Panel(
        title="Remarks by code",
        description="What was said to authors beside the decision, by its code: docs/codes.md has each.",
        unit="reqps",
        queries=((f"sum by (code) (rate(berth_remarks_total{{{OURS}}}[$__rate_interval])) > 0", "{{code}}"),),
        stacked=True,
    ),
)
MONEY = (
    Panel(
        title="Dollars an hour admitted, by namespace",
        description="What the GPU pods that were admitted in the last hour cost together for each hour that they run: at the catalog's "
        "indicative "
        "prices, on the cheapest machines that they may run on. Not what runs now, and nothing is taken off when a pod ends.",
        unit="currencyUSD",
        queries=((f"sum by (resource_namespace) ({USD})", "{{resource_namespace}}"),),
        stacked=True,
    ),
    Panel(
        title="GPUs admitted, by model",
        description="GPUs of the pods that were admitted in the last hour; a slice counts as its part. A model where the placement leaves "
        "one, "
        "else its family, else any: much of any means that pods say little about what they need.",
        unit="short",
        queries=((f"sum by (model) ({GPUS})", "{{model}}"),),
        stacked=True,
    ),
    Panel(
        title="GPUs admitted, by namespace and model, last hour",
        description="The same as a list. (other) are namespaces past the three hundred that have series of their own, or unknown ones.",
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
        description="GPU pods without a node. capacity, gated, scheduler and claims end by themselves, or are others' business. taint, "
        "label, "
        "resource, machines, limits and static don't: `berth why pod/NAME` tells what to change. Told by `berth audit --serve`.",
        unit="short",
        queries=((f"max by (cluster, namespace, reason) (berth_pods_waiting{{{OURS}}}) > 0", "{{reason}}"),),
        stacked=True,
    ),
    Panel(
        title="Pods that exist and policies would change or deny",
        description="would-change, would-deny: by policies in Audit or Warn. not-as-enforced: created while Berth was away, or before "
        "the policy. "
        "no-longer-fits: what is enforced now would deny it where it runs.",
        unit="short",
        queries=((f"max by (cluster, namespace, finding) (berth_audit_findings{{{OURS}}})", "{{finding}}"),),
    ),
)
OPEN = (
    Panel(
        title="Calls that were not judged",
        description="unavailable: no policies yet, or a claim or namespace that is not known yet; the API server asks again. shed: a "
        "replica is "
        "behind and sends calls to the others. failed: a mistake of Berth's, see event=failed in its log.",
        unit="reqps",
        queries=((f"sum by (phase, decision) ({CALLS}, {UNJUDGED}}})", "{{phase}} {{decision}}"),),
        width=8,
    ),
    Panel(
        title="Passed unjudged, as the API server counts",
        description="Objects that an entry with failurePolicy Ignore let pass since Berth did not answer. Guardrails did not hold for "
        "them. "
        "Needs a Prometheus that reads kube-apiserver; no data: none since that started.",
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
        title="Denied since Berth did not answer",
        description="Objects that an entry with failurePolicy Fail denied since Berth did not answer; controllers try again by "
        "themselves. "
        "Needs a Prometheus that reads kube-apiserver; no data: none since that started.",
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
    description="What Berth decides of GPU pods: how many and how fast, by which policies, what they cost, what waits, and what passes "
    "unjudged.",
    variables=VARIABLES,
    links=(("Replica health", "berth-replica-health"),),
    rows=(
        ("At a glance", GLANCE),
        ("Decisions", DECISIONS),
        ("Policies", POLICIES),
        ("GPUs and money", MONEY),
        ("Pods that wait, and pods that exist", WAITING),
        ("Not judged: fail open, fail closed", OPEN),
    ),
)
