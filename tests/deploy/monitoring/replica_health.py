"""The dashboard *Berth / Replica health*: whether each replica can judge, what load it has, and how well it follows the cluster."""

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
        description="The version of each replica. Two for longer than a rollout takes: it is stuck.",
        unit="short",
        queries=((f"count by (instance, version) (berth_build_info{{{OURS}}})", "{{instance}} {{version}}"),),
        kind="stat",
        width=6,
        height=6,
    ),
    Panel(
        title="Age of the policies in force",
        description="Since the policies in force were put in force. Old is well where nobody changes policies; older than on other "
        "replicas is not. "
        "Some fifty years: there are none yet.",
        unit="s",
        queries=((f"time() - berth_snapshot_timestamp_seconds{{{OURS}}}", "{{instance}}"),),
        kind="stat",
        width=6,
        height=6,
    ),
    Panel(
        title="Certificate and CA: time left",
        description="Of the certificate that is served, and of its CA (only with --cert-secret). Berth renews with a third left; below a "
        "day "
        "something keeps it from that.",
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
        description="Which replica writes statuses and Events. None for minutes: statuses grow old, decisions do not depend on it.",
        unit="bool_yes_no",
        queries=((f"berth_lease_held{{{OURS}}}", "{{instance}}"),),
        kind="stat",
        width=6,
        height=6,
    ),
    _yes_no(
        "berth_snapshot_last_reload_successful",
        "Policies read",
        "Whether the last reading of policies was good. no: what is on disk is wrong, the last good ones act, the log says why.",
    ),
    _yes_no(
        "berth_certificate_last_reload_successful",
        "Certificate read",
        "Whether the certificate on disk is the one served. no: it can't be served, the last good one goes on.",
    ),
    _yes_no(
        "berth_ca_trusted",
        "CA in the registration",
        "Whether the webhook configurations have the CA of the certificate served. no: the API server can't call this replica.",
    ),
    _yes_no(
        "berth_registered",
        "Registered",
        "Whether the webhook configurations exist. no: the API server sends no pods, or only a part of the calls.",
    ),
    _yes_no(
        "berth_registration_current",
        "Registration current",
        "Whether the webhook configurations are made of this replica's catalog. no: some pods with accelerators don't reach it.",
    ),
)
LOAD = (
    Panel(
        title="Calls by replica",
        description="Calls answered. API servers keep connections, so replicas differ; one with none at all is not reached.",
        unit="reqps",
        queries=((f"sum by (instance) (rate(berth_requests_total{{{OURS}}}[$__rate_interval]))", "{{instance}}"),),
    ),
    Panel(
        title="Calls sent away, by replica",
        description="unavailable, shed or failed. Of one replica alone: look at it; of all: too little CPU, or the cluster can't be "
        "followed.",
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
        description="Calls whose body has not come whole. It is zero nearly always; more for minutes means a slow network or a slow "
        "caller.",
        unit="short",
        queries=((f"berth_requests_in_flight{{{OURS}}}", "{{instance}}"),),
        width=8,
    ),
    Panel(
        title="Connections cut, by reason",
        description="idle is everyday. handshake: the certificate is not trusted, or a scanner. crowded, slow, unread: somebody other "
        "than the API "
        "server, or an ill network. head, garbled: no API server.",
        unit="cps",
        queries=((f"sum by (reason) (rate(berth_connections_cut_total{{{OURS}}}[$__rate_interval]))", "{{reason}}"),),
        width=8,
    ),
    Panel(
        title="Log lines lost",
        description="Lines that nobody took in time. Anything but zero: the log collector or the node's disk is ill.",
        unit="wps",
        queries=((f"sum by (instance) (rate(berth_log_lines_dropped_total{{{OURS}}}[$__rate_interval]))", "{{instance}}"),),
        width=8,
        steps=((None, "green"), (0.001, "red")),
    ),
    Panel(
        title="CPU",
        description="Cores used; the audit too. A replica uses one at most: near one, or near its limit, it sheds calls.",
        unit="short",
        queries=((f"rate(process_cpu_seconds_total{{{OURS}}}[$__rate_interval]) {EITHERS}", "{{job}} {{instance}}"),),
        width=8,
    ),
    Panel(
        title="Memory",
        description="Resident memory; the audit too. It grows with decisions that are kept, to some 25 MB more, and is then level.",
        unit="bytes",
        queries=((f"process_resident_memory_bytes{{{OURS}}} {EITHERS}", "{{job}} {{instance}}"),),
        width=8,
    ),
    Panel(
        title="Files and connections open",
        description="Share of those that the process may have. Near one it takes no connections.",
        unit="percentunit",
        queries=((f"process_open_fds{{{OURS}}} / process_max_fds{{{OURS}}} {BERTHS}", "{{instance}}"),),
        width=8,
        steps=((None, "green"), (0.8, "red")),
    ),
)
CLUSTER = (
    Panel(
        title="Watches: seconds of silence",
        description="Since anything was heard of a kind of object. A watch that lives tells something each minute: beyond five, what is "
        "known "
        "grows old.",
        unit="s",
        queries=((f"max by (instance, kind) (berth_watch_silent_seconds{{{OURS}}})", "{{instance}} {{kind}}"),),
        steps=((None, "green"), (120, "yellow"), (300, "red")),
    ),
    Panel(
        title="Kinds that can't be followed",
        description="0 for a kind that is followed, 1 for one that is not. NodePool is not where there is no Karpenter, and resource "
        "claims not "
        "before Kubernetes 1.32; for all others see /readyz.",
        unit="short",
        queries=((f"1 - min by (instance, kind) (berth_watch_healthy{{{OURS}}})", "{{instance}} {{kind}}"),),
    ),
    Panel(
        title="Watches: events and errors",
        description="Changes that the API server told of, and lists and watches that failed. Errors without end: /readyz names the reason.",
        unit="cps",
        queries=(
            (f"sum by (instance) (rate(berth_watch_events_total{{{OURS}}}[$__rate_interval]))", "{{instance}} events"),
            (f"sum by (instance) (rate(berth_watch_errors_total{{{OURS}}}[$__rate_interval]))", "{{instance}} errors"),
        ),
        width=8,
    ),
    Panel(
        title="Objects known, by kind",
        description="The same on every replica, but for moments: one that has fewer is behind.",
        unit="short",
        queries=((f"max by (instance, kind) (berth_watch_objects{{{OURS}}})", "{{instance}} {{kind}}"),),
        width=8,
    ),
    Panel(
        title="Policies read anew",
        description="ok: other policies were put in force. denied: what is on disk or in the cluster was wrong.",
        unit="cpm",
        queries=((f"sum by (result) (rate(berth_snapshot_reloads_total{{{OURS}}}[$__rate_interval])) * 60", "{{result}}"),),
        width=8,
    ),
    Panel(
        title="Objects of Berth's that are not understood",
        description="last_good: an older form acts. nothing: the object does not act, and a guardrail may be missing. `kubectl get gpu "
        "-A` names them.",
        unit="short",
        queries=((f"max by (acting) (berth_objects_rejected{{{OURS}}})", "{{acting}}"),),
        width=8,
        steps=((None, "green"), (1, "red")),
    ),
    Panel(
        title="Statuses written",
        description="By the holder of the Lease. lost: somebody was faster, or the object is gone. failed: see event=status_failed.",
        unit="wps",
        queries=((f"sum by (result) (rate(berth_status_writes_total{{{OURS}}}[$__rate_interval]))", "{{result}}"),),
        width=8,
    ),
    Panel(
        title="Resources that nobody asks Berth about",
        description="Resources on nodes and DeviceClasses that may be accelerators and that no condition of the registration catches.",
        unit="short",
        queries=((f"max by (instance) (berth_resources_overlooked{{{OURS}}})", "{{instance}}"),),
        width=8,
        steps=((None, "green"), (1, "red")),
    ),
    Panel(
        title="Nodes with GPUs, by what offers them",
        description="A device plugin, DRA, or both, which gives a GPU to two pods.",
        unit="short",
        queries=((f"max by (vendor, mode) (berth_gpu_nodes{{{OURS}}})", "{{vendor}}: {{mode}}"),),
        width=16,
    ),
    Panel(
        title="Labels that nobody maintains",
        description="Label keys on which no term is written, since no GPU Feature Discovery runs.",
        unit="short",
        queries=((f"max by (instance) (berth_labels_unmaintained{{{OURS}}})", "{{instance}}"),),
        width=8,
        steps=((None, "green"), (1, "yellow")),
    ),
)
AUDIT = (
    Panel(
        title="Audit: pods, and pods to be judged",
        description="Pods with accelerators that the audit knows, and those that wait to be judged: a peak after a change of a policy is "
        "usual.",
        unit="short",
        queries=(
            (f"berth_audit_pods{{{OURS}}}", "{{instance}} pods"),
            (f"berth_audit_pods_due{{{OURS}}}", "{{instance}} to be judged"),
        ),
    ),
    Panel(
        title="Audit: reports",
        description="Reports that are to be written, and what became of those that were. failed without end: see event=report_failed.",
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
    description="Whether each replica of Berth can judge, what load it has, and how well it follows the cluster.",
    variables=(*VARIABLES, INSTANCE),
    links=(("Overview", "berth-overview"),),
    rows=(("Can it judge?", STATES), ("Load", LOAD), ("What it knows of the cluster", CLUSTER), ("The audit", AUDIT)),
)
