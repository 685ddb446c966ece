"""For each alert an hour in which it fires: the healthy hour with some series replaced."""

from __future__ import annotations

from dataclasses import dataclass, field

A = 'namespace="berth-system", job="berth-system/berth", instance="10.0.0.1:8081"'
B = 'namespace="berth-system", job="berth-system/berth", instance="10.0.0.2:8081"'
AUDIT = 'namespace="berth-system", job="berth-system/berth-audit", instance="10.0.0.3:8081"'
HOUR = "x70"
"""Minutes of a constant, or of a constant increase"""


def _of_replica(labels: str, *, holds: bool) -> dict[str, str]:
    calls = {
        f'{phase}", decision="{decision}': rate
        for phase in ("mutate", "validate")
        for decision, rate in (("patched", 60), ("denied", 1), ("unavailable", 0), ("shed", 0), ("failed", 0))
    }
    return {
        f"up{{{labels}}}": f"1{HOUR}",
        f'berth_build_info{{{labels}, version="1.2.3"}}': f"1{HOUR}",
        f"berth_snapshot_timestamp_seconds{{{labels}}}": f"1{HOUR}",
        f"berth_snapshot_last_reload_successful{{{labels}}}": f"1{HOUR}",
        f'berth_files_last_check_timestamp_seconds{{{labels}, files="policies"}}': f"0+60{HOUR}",
        f"berth_certificate_expiry_timestamp_seconds{{{labels}}}": f"604800{HOUR}",
        f"berth_certificate_last_reload_successful{{{labels}}}": f"1{HOUR}",
        f"berth_ca_expiry_timestamp_seconds{{{labels}}}": f"31536000{HOUR}",
        f"berth_ca_trusted{{{labels}}}": f"1{HOUR}",
        f"berth_registered{{{labels}}}": f"1{HOUR}",
        f"berth_registration_current{{{labels}}}": f"1{HOUR}",
        f"berth_resources_overlooked{{{labels}}}": f"0{HOUR}",
        f'berth_gpu_nodes{{{labels}, vendor="nvidia", mode="device-plugin"}}': f"4{HOUR}",
        f'berth_gpu_nodes{{{labels}, vendor="nvidia", mode="dra"}}': f"2{HOUR}",
        f"berth_labels_unmaintained{{{labels}}}": f"4{HOUR}",
        f"berth_lease_held{{{labels}}}": f"{int(holds)}{HOUR}",
        f'berth_status_writes_total{{{labels}, result="failed"}}': f"3{HOUR}",
        f'berth_watch_silent_seconds{{{labels}, kind="Node"}}': f"50{HOUR}",
        f'berth_watch_isolated_objects{{{labels}, kind="Node"}}': f"0{HOUR}",
        f'berth_objects_rejected{{{labels}, acting="nothing"}}': f"0{HOUR}",
        f'berth_objects_rejected{{{labels}, acting="last_good"}}': f"0{HOUR}",
        f'berth_policies{{{labels}, kind="ClusterGPUPolicy", mode="Enforce"}}': f"4{HOUR}",
        f'berth_policies{{{labels}, kind="GPUPolicy", mode="Audit"}}': f"2{HOUR}",
        f"berth_audits_skipped_total{{{labels}}}": f"7{HOUR}",
        f"berth_log_lines_dropped_total{{{labels}}}": f"9{HOUR}",
        f"process_open_fds{{{labels}}}": f"60{HOUR}",
        f"process_max_fds{{{labels}}}": f"1000{HOUR}",
        f'berth_connections_cut_total{{{labels}, reason="idle"}}': f"0+30{HOUR}",
        f'berth_connections_cut_total{{{labels}, reason="handshake"}}': f"0+1{HOUR}",
        f'berth_pods_total{{{labels}, decision="admitted"}}': f"0+40{HOUR}",
        f'berth_pods_total{{{labels}, decision="denied"}}': f"0+1{HOUR}",
        f'berth_policy_outcomes_total{{{labels}, policy="ClusterGPUPolicy/a", rule="r", mode="Enforce", outcome="denied"}}': f"0+1{HOUR}",
        f'berth_admitted_usd_per_hour_total{{{labels}, resource_namespace="ml"}}': f"0+3{HOUR}",
        f'berth_admitted_gpus_total{{{labels}, resource_namespace="ml", model="T4"}}': f"0+2{HOUR}",
        **{f'berth_requests_total{{{labels}, phase="{call}"}}': f"0+{rate}{HOUR}" for call, rate in calls.items()},
        **{
            f'berth_request_duration_seconds_bucket{{{labels}, phase="{phase}", decision="patched", le="{le}"}}': f"0+{rate}{HOUR}"
            for phase in ("mutate", "validate", "advise")
            for le, rate in (("0.002", 59.9), ("0.5", 60), ("5.0", 60), ("+Inf", 60))
        },
    }


HEALTHY: dict[str, str] = {
    **_of_replica(A, holds=True),
    **_of_replica(B, holds=False),
    f"up{{{AUDIT}}}": f"1{HOUR}",
    f"berth_audit_pods{{{AUDIT}}}": f"100{HOUR}",
    f"berth_lease_held{{{AUDIT}}}": f"1{HOUR}",
    f'berth_watch_silent_seconds{{{AUDIT}, kind="Pod"}}': f"50{HOUR}",
    f'berth_status_writes_total{{{AUDIT}, result="failed"}}': f"3{HOUR}",
    f'berth_audit_report_writes_total{{{AUDIT}, result="failed"}}': f"1{HOUR}",
    **{
        f'berth_pods_waiting{{{AUDIT}, reason="{reason}"}}': f"{number}{HOUR}"
        for reason, number in (("capacity", 30), ("gated", 5), ("scheduler", 1), ("claims", 1), ("unknown", 2), ("taint", 0), ("label", 0))
    },
    'up{job="apiserver", instance="m"}': f"1{HOUR}",
    'up{job="node-exporter", instance="n1", namespace="monitoring"}': f"0{HOUR}",
    'process_open_fds{job="node-exporter", instance="n1", namespace="monitoring"}': f"999{HOUR}",
    'process_max_fds{job="node-exporter", instance="n1", namespace="monitoring"}': f"1000{HOUR}",
    'apiserver_admission_webhook_fail_open_count{job="apiserver", instance="m", name="validate.claims.berth.dev"}': f"2{HOUR}",
    'apiserver_admission_webhook_fail_open_count{job="apiserver", instance="m", name="webhook.somebody.example"}': f"0+5{HOUR}",
}
"""Two replicas and the audit under load, with what is everyday: old failures that do not go on, pods that wait for room, others' ills"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An hour in which an alert fires."""

    series: dict[str, str]
    """In place of those of HEALTHY, or besides"""
    gone: tuple[str, ...] = ()
    """Beginnings of series that end after ten minutes"""
    labels: dict[str, str] = field(default_factory=dict)
    """What it tells besides the job and its namespace"""
    without: tuple[str, ...] = ()
    """Of these two, what it does not tell"""
    also: tuple[str, ...] = ()
    """Other alerts that are right to fire then"""


def _both(series: str, more: str, values: str) -> dict[str, str]:
    return {f"{series}{{{replica}{more}}}": values for replica in (A, B)}


def _each(minutes: int) -> str:
    """A counter that grows by one each so many minutes."""
    return " ".join(str(minute // minutes) for minute in range(71))


_CALLS = tuple(name for name in HEALTHY if name.startswith("berth_requests_total"))
ONE, AN_AUDIT = {"instance": "10.0.0.1:8081"}, {"job": "berth-system/berth-audit"}
CASES: dict[str, Case] = {
    "BerthReplicasGone": Case(series={}, gone=(f"berth_build_info{{{A}", f"berth_build_info{{{B}")),
    "BerthReplicaDown": Case(series={f"up{{{A}}}": "1x50 0x20"}, gone=(), labels=ONE),
    "BerthReplicaNotReady": Case(
        series={
            f"berth_snapshot_timestamp_seconds{{{A}}}": f"0{HOUR}",
            f"berth_snapshot_last_reload_successful{{{A}}}": f"0{HOUR}",
        },
        labels=ONE,
    ),
    "BerthFailedOpen": Case(
        series={'apiserver_admission_webhook_fail_open_count{job="apiserver", instance="m", name="mutate.pods.berth.dev"}': f"0+1{HOUR}"},
        labels={"name": "mutate.pods.berth.dev"},
        without=("namespace", "job"),
    ),
    "BerthCallsNotAnswered": Case(series=_both("berth_requests_total", ', phase="mutate", decision="shed"', f"0+10{HOUR}")),
    "BerthFailed": Case(
        series={f'berth_requests_total{{{A}, phase="mutate", decision="failed"}}': "0x55 1x15"}, labels={**ONE, "phase": "mutate"}
    ),
    "BerthSlow": Case(
        series={
            **_both("berth_request_duration_seconds_bucket", ', phase="mutate", decision="patched", le="0.002"', f"0+50{HOUR}"),
            **_both("berth_request_duration_seconds_bucket", ', phase="mutate", decision="patched", le="0.5"', f"0+50{HOUR}"),
        },
        labels={"phase": "mutate"},
    ),
    "BerthConnectionsCut": Case(
        series=_both("berth_connections_cut_total", ', reason="handshake"', f"0+30{HOUR}"), labels={"reason": "handshake"}
    ),
    "BerthFileDescriptorsLow": Case(series={f"process_open_fds{{{A}}}": f"900{HOUR}"}, labels=ONE),
    "BerthLogLinesDropped": Case(series={f"berth_log_lines_dropped_total{{{A}}}": "9x55 12x15"}, labels=ONE),
    "BerthPoliciesNotRead": Case(series={f"berth_snapshot_last_reload_successful{{{A}}}": "1x30 0x40"}, labels=ONE),
    "BerthObjectsIsolated": Case(series={f'berth_watch_isolated_objects{{{A}, kind="Node"}}': "0x10 2x60"}, labels={**ONE, "kind": "Node"}),
    "BerthFilesHang": Case(
        series={f'berth_files_last_check_timestamp_seconds{{{A}, files="policies"}}': f"1800{HOUR}"}, labels={**ONE, "files": "policies"}
    ),
    "BerthObjectsNotUnderstood": Case(
        series=_both("berth_objects_rejected", ', acting="nothing"', "0x20 1x50"), labels={"acting": "nothing"}
    ),
    "BerthReplicasDisagree": Case(series={f'berth_policies{{{A}, kind="GPUPolicy", mode="Audit"}}': f"1{HOUR}"}),
    "BerthDeniesMost": Case(series=_both("berth_pods_total", ', decision="denied"', f"0+60{HOUR}")),
    "BerthPoliciesNotTried": Case(series={f"berth_audits_skipped_total{{{A}}}": f"0+1{HOUR}"}),
    "BerthCertificateExpires": Case(series={f"berth_certificate_expiry_timestamp_seconds{{{A}}}": f"80000{HOUR}"}, labels=ONE),
    "BerthCaExpires": Case(series=_both("berth_ca_expiry_timestamp_seconds", "", f"500000{HOUR}")),
    "BerthCaNotTrusted": Case(series={f"berth_ca_trusted{{{A}}}": "1x40 0x30"}),
    "BerthCertificateNotRead": Case(series={f"berth_certificate_last_reload_successful{{{A}}}": "1x30 0x40"}, labels=ONE),
    "BerthWatchSilent": Case(series={f'berth_watch_silent_seconds{{{A}, kind="Node"}}': f"0+60{HOUR}"}, labels=ONE),
    "BerthNobodyWrites": Case(series={f"berth_lease_held{{{A}}}": "1x40 0x30"}),
    "BerthStatusesNotWritten": Case(series={f'berth_status_writes_total{{{A}, result="failed"}}': f"0+1{HOUR}"}),
    "BerthRegistrationMissing": Case(
        series={
            **_both("berth_registered", "", "1x30 0x40"),
            **_both("berth_registration_current", "", "1x30 0x40"),
            **_both("berth_ca_trusted", "", "1x30 0x40"),
        }
    ),
    "BerthRegistrationOutdated": Case(series={f"berth_registration_current{{{A}}}": "1x30 0x40"}),
    "BerthAcceleratorsOverlooked": Case(series={f"berth_resources_overlooked{{{A}}}": "0x30 1x40"}),
    "BerthGpusOfferedTwice": Case(
        series={f'berth_gpu_nodes{{{A}, vendor="nvidia", mode="both"}}': "0x30 3x40"}, labels={"vendor": "nvidia"}
    ),
    "BerthPodsHaveNoPlace": Case(
        series={f'berth_pods_waiting{{{AUDIT}, reason="taint"}}': "0x20 4x50"}, labels={"reason": "taint"}, without=("job",)
    ),
    "BerthReportsNotWritten": Case(series={f'berth_audit_report_writes_total{{{AUDIT}, result="failed"}}': f"0+1{HOUR}"}, labels=AN_AUDIT),
}
OTHERS: dict[str, Case] = {
    "BerthReplicaDown: for more than an hour": Case(
        series={f"up{{{A}}}": "1x2 0x67", f'berth_build_info{{{A}, version="1.2.3"}}': "1x2 stale _x66"}, labels=ONE
    ),
    "BerthReplicaNotReady: an expired certificate": Case(
        series={f"berth_certificate_expiry_timestamp_seconds{{{A}}}": f"1000{HOUR}"}, labels=ONE
    ),
    "BerthReplicaNotReady: no certificate yet": Case(
        series={
            f"berth_certificate_expiry_timestamp_seconds{{{A}}}": "NaN " * 70,
            f"berth_certificate_last_reload_successful{{{A}}}": f"0{HOUR}",
        },
        labels=ONE,
    ),
    "BerthCallsNotAnswered: the few that there are": Case(
        series={
            **dict.fromkeys(_CALLS, f"0{HOUR}"),
            **_both("berth_requests_total", ', phase="mutate", decision="unavailable"', _each(3)),
        }
    ),
    "BerthRegistrationMissing: no replica can tell": Case(
        series={},
        gone=(f"berth_registered{{{A}", f"berth_registered{{{B}", f"berth_registration_current{{{A}", f"berth_registration_current{{{B}"),
    ),
    "BerthFailedOpen: for the first time": Case(
        series={'apiserver_admission_webhook_fail_open_count{job="apiserver", instance="m", name="mutate.pods.berth.dev"}': "_x55 1x15"},
        labels={"name": "mutate.pods.berth.dev"},
        without=("namespace", "job"),
    ),
    "BerthNobodyWrites: of the audit": Case(series={f"berth_lease_held{{{AUDIT}}}": f"0{HOUR}"}, labels=AN_AUDIT),
    "BerthStatusesNotWritten: of the audit": Case(
        series={f'berth_status_writes_total{{{AUDIT}, result="failed"}}': f"0+1{HOUR}"}, labels=AN_AUDIT
    ),
}
"""Further ways to an alert, which is named before the colon"""

_CLUSTER = ("berth_lease_held", "berth_registered", "berth_registration_current", "berth_watch_silent_seconds")
"""Metrics of replicas that follow a cluster"""
QUIET: dict[str, dict[str, str]] = {
    "replicas whose policies are files": {name: "stale _x69" for name in HEALTHY if name.startswith(_CLUSTER) and AUDIT not in name},
    "a pod each three minutes, in a namespace that is new each time": {
        **dict.fromkeys(_CALLS, f"0{HOUR}"),
        f'berth_requests_total{{{A}, phase="mutate", decision="unavailable"}}': _each(3),
        f'berth_requests_total{{{B}, phase="mutate", decision="patched"}}': _each(3),
        f'berth_requests_total{{{A}, phase="validate", decision="patched"}}': _each(3),
    },
}
"""Series in place of those of HEALTHY in hours in which nothing fires"""
