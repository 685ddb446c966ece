"""Installations that differ from the usual one: each value of the chart is other than its default in at least one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.deploy.rendering import KINDS_THERE, Raw, rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Values, and under which name and where."""

    values: dict[str, Any] = field(default_factory=dict)
    release: str = "berth"
    namespace: str = "berth-system"

    def objects(self) -> list[Raw]:
        """In a cluster that has Berth's kinds."""
        return rendered(self.values, KINDS_THERE, release=self.release, namespace=self.namespace)


LIBRARY = ["batch-on-spot", "berth-default", "inference", "notebooks", "training"]
VARIANTS = {
    "default": Variant(),
    "another name and namespace": Variant(release="gpus", namespace="platform"),
    "a name that holds berth": Variant(release="my-berth", namespace="platform", values={"fullnameOverride": "doorman"}),
    "cert-manager": Variant(
        values={
            "certificates": {
                "source": "cert-manager",
                "secretName": "served",
                "caOverlap": "2h",
                "certManager": {
                    "issuerRef": {"name": "platform", "kind": "ClusterIssuer", "group": "cert-manager.io"},
                    "duration": "720h",
                    "renewBefore": "240h",
                },
            }
        }
    ),
    "a Secret of one's own": Variant(values={"certificates": {"source": "secret", "secretName": "mine"}}),
    "short lives": Variant(values={"certificates": {"caLife": "24h", "leafLife": "1h", "caOverlap": "5m"}}),
    "a private control plane": Variant(
        values={
            "hostNetwork": True,
            "ports": {"webhook": 10260, "health": 10261},
            "listenAddress": "0.0.0.0",
            "service": {"port": 8443, "annotations": {"a": "b"}},
        }
    ),
    "queues": Variant(values={"registration": {"queues": True}, "platformNamespaces": ["lws-system"]}),
    "registration": Variant(
        values={
            "registration": {
                "failurePolicy": "Ignore",
                "claims": "Fail",
                "timeoutSeconds": 10,
                "excludedNamespaces": ["gpu-operator"],
                "annotations": {"admissions.enforcer/disabled": "true"},
                "namespaceSelector": {
                    "matchLabels": {"berth.dev/checked": "true"},
                    "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}],
                },
            }
        }
    ),
    "no claims": Variant(values={"registration": {"claims": "Off", "timeoutSeconds": 1}}),
    "policies": Variant(
        values={
            "library": {"policies": LIBRARY, "mode": "Enforce", "modes": {"training": "Warn"}},
            "maxMode": "Warn",
            "platforms": ["gke", "gfd"],
            "migStrategy": "mixed",
            "queues": ["kueue"],
            "catalog": {"notAccelerators": [{"name": "acme.example/gpu"}]},
        }
    ),
    "metrics and network": Variant(
        values={
            "metrics": {
                "podMonitor": True,
                "serviceMonitor": True,
                "interval": "15s",
                "labels": {"release": "prometheus"},
                "prometheusRule": {"enabled": True, "labels": {"role": "alert-rules"}},
                "dashboards": {"enabled": True, "labels": {"grafana_folder": "gpus"}},
            },
            "networkPolicy": {
                "enabled": True,
                "apiServerCIDRs": ["10.0.0.0/28"],
                "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            },
        }
    ),
    "console": Variant(
        values={
            "consoleURL": "https://gpus.example.com",
            "console": {
                "enabled": True,
                "url": "https://gpus.example.com",
                "session": "30m",
                "audiences": ["berth-console"],
                "port": 9443,
                "tlsSecretName": "console-tls",
                "serviceAnnotations": {"a": "b"},
                "ingress": {"enabled": True, "className": "nginx", "annotations": {"c": "d"}, "tlsSecretName": "browsers"},
                "resources": {"limits": {"memory": "1Gi"}},
                "extraArgs": ["--every=60"],
            },
            "networkPolicy": {"enabled": True, "consoleFrom": [{"podSelector": {"matchLabels": {"app": "ingress"}}}]},
        }
    ),
    "OpenShift": Variant(values={"podSecurityContext": {"runAsUser": None, "runAsGroup": None}, "console": {"enabled": True}}),
    "open network": Variant(values={"networkPolicy": {"enabled": True}}),
    "autoscaling": Variant(
        values={
            "autoscaling": {
                "enabled": True,
                "minReplicas": 2,
                "maxReplicas": 5,
                "targetCPUUtilizationPercentage": 50,
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 600}},
            }
        }
    ),
    "guards": Variant(
        namespace="platform",
        values={
            "guards": {
                "guardedNames": {"enabled": True, "labels": ["team"], "labelPrefixes": ["acme.example/"], "namespaces": ["vault"]},
                "gpuUseWithoutRequest": {"enabled": True, "actions": ["Deny", "Audit"]},
                "backstop": {
                    "enabled": True,
                    "gpusPerPod": 4,
                    "gracePeriodSeconds": 600,
                    "forbiddenTolerations": [{"key": "team", "value": "web"}, {"key": "acme.example/pool", "effect": "NoSchedule"}],
                    "actions": ["Deny", "Audit"],
                },
            },
            "registration": {"excludedNamespaces": ["gpu-operator"], "namespaceSelector": {"matchLabels": {"gpus": "yes"}}},
        },
    ),
    "pods": Variant(
        values={
            "image": {"repository": "registry.example/berth", "digest": f"sha256:{'0' * 64}", "tag": "x", "pullPolicy": "Always"},
            "imagePullSecrets": [{"name": "registry"}],
            "replicas": 2,
            "resources": {"requests": {"cpu": "1"}},
            "podDisruptionBudget": {"maxUnavailable": "50%"},
            "lameDuckSeconds": 20,
            "drainSeconds": 40,
            "revisionHistoryLimit": 1,
            "priorityClassName": "",
            "nodeSelector": {"pool": "system"},
            "tolerations": [{"key": "system", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}
            ],
            "podAnnotations": {"a": "b"},
            "podLabels": {"team": "platform", "app.kubernetes.io/name": "other"},
            "serviceAccount": {"annotations": {"role": "x"}},
            "extraArgs": ["--watch=120"],
            "audit": {"resources": {"limits": {"memory": "1Gi"}}, "extraArgs": ["--watch=30"]},
            "extraEnv": [{"name": "A", "value": "b"}],
            "extraVolumes": [{"name": "callers", "configMap": {"name": "callers-ca"}}],
            "extraVolumeMounts": [{"name": "callers", "mountPath": "/etc/callers"}],
        }
    ),
    "bare": Variant(
        values={
            "crds": {"install": False},
            "rbac": {"aggregate": False, "guardrailReaders": ["ml-teams"]},
            "podDisruptionBudget": {"enabled": False},
            "resourceQuota": {"enabled": False, "pods": 5},
            "tests": {"enabled": False},
            "audit": {"enabled": False},
            "image": {"tag": "0.9"},
        }
    ),
}
