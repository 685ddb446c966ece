"""The dashboard *Berth / Replica health*: whether each replica can evaluate pods, its load, and how well it watches the cluster."""

from __future__ import annotations

from tests.deploy.monitoring.overview import VARIABLES
from tests.deploy.monitoring.panels import Dashboard, Panel, Variable

OURS = 'cluster=~"$cluster", namespace=~"$namespace", job=~"$job", instance=~"$instance"'
BERTHS = f"and on (cluster, namespace, job, instance) berth_build_info{{{OURS}}}"
"""Every process has process_*: only those of Berth's servers are meant"""
EITHERS = f'and on (cluster, namespace, job, instance) {{__name__=~"berth_build_info|berth_audit_pods", {OURS}}}'
INSTANCE = Variable(
    name="instance",
    label="Instance",
    of='{__name__=~"berth_build_info|berth_audit_pods", cluster=~"$cluster", namespace=~"$namespace", job=~"$job"}',
)
GOOD = (("0", "no", "red"), ("1", "yes", "green"))


def _yes_no(metric: str, title: str, description: str) -> Panel:
    """Return the panel of a gauge that is 1 where all is well, and 0 otherwise."""
    return Panel(
        title=title,
        description=description,
        unit="bool_yes_no",
        queries=((f"{metric}{{{OURS}}}", "{{instance}}"),),
        kind="stat",
        width=6,
        height=5,
        words=GOOD,
    )


STATES = (
    Panel(
        title="Versions",
        description="Version of each replica. If two stay for longer than a rollout takes, the rollout is stuck.",
        unit="short",
        queries=((f"count by (instance, version) (berth_build_info{{{OURS}}})", "{{instance}} {{version}}"),),
        kind="stat",
        width=6,
        height=6,
    ),
    Panel(
        title="Age of the active policies",
        description="Time since the active policies were loaded. High is normal while policies do not change; higher than on other "
        "replicas is not. Some fifty years means that none are loaded.",
        unit="s",
        queries=((f"time() - berth_snapshot_timestamp_seconds{{{OURS}}}", "{{instance}}"),),
        kind="stat",
        width=6,
        height=6,
    ),
    Panel(
        title="Certificate and CA: time left",
        description="Remaining life of the serving certificate and of its CA (only with --cert-secret). Berth renews at a third of the "
        "life; below a day something prevents it.",
        unit="s",
        queries=(
            (f"berth_certificate_expiry_timestamp_seconds{{{OURS}}} - time()", "{{instance}}"),
            (f"berth_ca_expiry_timestamp_seconds{{{OURS}}} - time()", "{{instance}} CA"),
        ),
        kind="stat",
        width=6,
        height=6,
        steps=((None, "red"), (86_400, "yellow"), (172_800, "green")),
    ),
    Panel(
        title="Lease",
        description="The replica that writes statuses and Events. If none does for minutes, statuses grow old; decisions are not affected.",
        unit="bool_yes_no",
        queries=((f"berth_lease_held{{{OURS}}}", "{{instance}}"),),
        kind="stat",
        width=6,
        height=6,
    ),
    _yes_no(
        "berth_snapshot_last_reload_successful",
        "Policies valid",
        "no: the policies on disk have errors and the last valid set is active. The log has the errors.",
    ),
    _yes_no(
        "berth_certificate_last_reload_successful",
        "Certificate valid",
        "no: the certificate on disk can't be served. The last valid one is served.",
    ),
    _yes_no(
        "berth_ca_trusted",
        "CA trusted",
        "no: the webhook configurations do not have the serving certificate's CA, so the API server can't call this replica.",
    ),
    _yes_no(
        "berth_registered",
        "Webhook configurations exist",
        "no: the API server sends no pods to Berth, or only some of the calls.",
    ),
    _yes_no(
        "berth_registration_current",
        "Webhook configurations current",
        "no: they do not match this replica's catalog, so some pods with accelerators do not reach it.",
    ),
)
LOAD = (
    Panel(
        title="Calls by replica",
        description="Answered calls. API servers keep connections, so replicas differ; a replica without calls is not reachable.",
        unit="reqps",
        queries=((f"sum by (instance) (rate(berth_requests_total{{{OURS}}}[$__rate_interval]))", "{{instance}}"),),
    ),
    Panel(
        title="Calls without a decision, by replica",
        description="unavailable, shed or failed. One replica: check it. All replicas: too little CPU, or the cluster can't be watched.",
        unit="reqps",
        queries=(
            (
                f"sum by (instance, decision) (rate(berth_requests_total{{{OURS}, "
                f'decision=~"unavailable|shed|failed"}}[$__rate_interval]))',
                "{{instance}} {{decision}}",
            ),
        ),
    ),
    Panel(
        title="Calls in flight",
        description="Calls whose body is incomplete. Normally zero; more for minutes means a slow network or client.",
        unit="short",
        queries=((f"berth_requests_in_flight{{{OURS}}}", "{{instance}}"),),
        width=8,
    ),
    Panel(
        title="Connections closed, by reason",
        description="idle is normal. handshake: the certificate is not trusted, or a scanner. crowded, slow, unread: another client than "
        "the API server, or a bad network. head, garbled: not an API server.",
        unit="cps",
        queries=((f"sum by (reason) (rate(berth_connections_cut_total{{{OURS}}}[$__rate_interval]))", "{{reason}}"),),
        width=8,
    ),
    Panel(
        title="Log lines lost",
        description="Lines that were not read in time. Above zero, check the log collector and the node's disk.",
        unit="wps",
        queries=((f"sum by (instance) (rate(berth_log_lines_dropped_total{{{OURS}}}[$__rate_interval]))", "{{instance}}"),),
        width=8,
        steps=((None, "green"), (0.001, "red")),
    ),
    Panel(
        title="CPU",
        description="Used cores, including the audit. A replica uses one core at most. Near that, or near its CPU limit, it sheds calls.",
        unit="short",
        queries=((f"rate(process_cpu_seconds_total{{{OURS}}}[$__rate_interval]) {EITHERS}", "{{job}} {{instance}}"),),
        width=8,
    ),
    Panel(
        title="Memory",
        description="Resident memory, including the audit. Cached decisions add up to some 25 MB.",
        unit="bytes",
        queries=((f"process_resident_memory_bytes{{{OURS}}} {EITHERS}", "{{job}} {{instance}}"),),
        width=8,
    ),
    Panel(
        title="Open files and connections",
        description="Share of the maximum. Near 100% the replica accepts no connections.",
        unit="percentunit",
        queries=((f"process_open_fds{{{OURS}}} / process_max_fds{{{OURS}}} {BERTHS}", "{{instance}}"),),
        width=8,
        steps=((None, "green"), (0.8, "red")),
    ),
)
CLUSTER = (
    Panel(
        title="Watches: seconds without a message",
        description="Time since the last message about a kind. A healthy watch gets one each minute; beyond five minutes the known objects "
        "grow old.",
        unit="s",
        queries=((f"max by (instance, kind) (berth_watch_silent_seconds{{{OURS}}})", "{{instance}} {{kind}}"),),
        steps=((None, "green"), (120, "yellow"), (300, "red")),
    ),
    Panel(
        title="Kinds that can't be watched",
        description="0: watched, 1: not. Normal for NodePool without Karpenter, and for ResourceClaim before Kubernetes 1.32. For other "
        "kinds see /readyz.",
        unit="short",
        queries=((f"1 - min by (instance, kind) (berth_watch_healthy{{{OURS}}})", "{{instance}} {{kind}}"),),
    ),
    Panel(
        title="Watches: events and errors",
        description="Changes received, and lists and watches that failed. If errors continue, /readyz has the reason.",
        unit="cps",
        queries=(
            (f"sum by (instance) (rate(berth_watch_events_total{{{OURS}}}[$__rate_interval]))", "{{instance}} events"),
            (f"sum by (instance) (rate(berth_watch_errors_total{{{OURS}}}[$__rate_interval]))", "{{instance}} errors"),
        ),
        width=8,
    ),
    Panel(
        title="Known objects, by kind",
        description="Normally the same on every replica. A replica with fewer is behind.",
        unit="short",
        queries=((f"max by (instance, kind) (berth_watch_objects{{{OURS}}})", "{{instance}} {{kind}}"),),
        width=8,
    ),
    Panel(
        title="Policy reloads",
        description="ok: new policies are active. rejected: those on disk have errors.",
        unit="cpm",
        queries=((f"sum by (result) (rate(berth_snapshot_reloads_total{{{OURS}}}[$__rate_interval])) * 60", "{{result}}"),),
        width=8,
    ),
    Panel(
        title="Invalid objects of Berth's kinds",
        description="last_good: an older version is active. nothing: the object has no effect, and a guardrail may be missing. `kubectl get"
        " clustergpupolicies.berth.dev,gpupolicies.berth.dev -A` names them.",
        unit="short",
        queries=((f"max by (acting) (berth_objects_rejected{{{OURS}}})", "{{acting}}"),),
        width=8,
        steps=((None, "green"), (1, "red")),
    ),
    Panel(
        title="Status writes",
        description="By the holder of the Lease. lost: the object changed or is gone. failed: see event=status_failed.",
        unit="wps",
        queries=((f"sum by (result) (rate(berth_status_writes_total{{{OURS}}}[$__rate_interval]))", "{{result}}"),),
        width=8,
    ),
    Panel(
        title="Resources that no match condition covers",
        description="Resources of nodes and DeviceClasses that may be accelerators, but that the webhook configurations do not match.",
        unit="short",
        queries=((f"max by (instance) (berth_resources_overlooked{{{OURS}}})", "{{instance}}"),),
        width=8,
        steps=((None, "green"), (1, "red")),
    ),
    Panel(
        title="GPU nodes, by what offers their GPUs",
        description="A device plugin, DRA, or both. With both, two pods can get the same GPU.",
        unit="short",
        queries=((f"max by (vendor, mode) (berth_gpu_nodes{{{OURS}}})", "{{vendor}}: {{mode}}"),),
        width=16,
    ),
    Panel(
        title="Unmaintained labels",
        description="Node labels on which Berth writes no terms, because no GPU Feature Discovery runs.",
        unit="short",
        queries=((f"max by (instance) (berth_labels_unmaintained{{{OURS}}})", "{{instance}}"),),
        width=8,
        steps=((None, "green"), (1, "yellow")),
    ),
)
AUDIT = (
    Panel(
        title="Audit: pods and pods due",
        description="Pods with accelerators that the audit knows, and those due for evaluation. A peak after a policy change is normal.",
        unit="short",
        queries=(
            (f"berth_audit_pods{{{OURS}}}", "{{instance}} pods"),
            (f"berth_audit_pods_due{{{OURS}}}", "{{instance}} due"),
        ),
    ),
    Panel(
        title="Audit: reports",
        description="Reports due, and results of writes. If failed continues, see event=report_failed.",
        unit="short",
        queries=(
            (f"berth_audit_reports_due{{{OURS}}}", "{{instance}} due"),
            (f"sum by (result) (increase(berth_audit_report_writes_total{{{OURS}}}[$__rate_interval]))", "{{result}}"),
        ),
    ),
)
DASHBOARD = Dashboard(
    uid="berth-replica-health",
    title="Berth / Replica health",
    description="Whether each replica of Berth can evaluate pods, its load, and how well it watches the cluster.",
    variables=(*VARIABLES, INSTANCE),
    links=(("Overview", "berth-overview"),),
    rows=(("Readiness", STATES), ("Load", LOAD), ("Watches of the cluster", CLUSTER), ("The audit", AUDIT)),
)
