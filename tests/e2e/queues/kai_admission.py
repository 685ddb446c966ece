"""KAI's admission webhook beside KAI (``tests.testcluster.addons.kai``): it gives a pod that asks for a part of a GPU the environment by
which the binder tells it its GPU, and denies one that asks for a whole GPU too.

    admission = kai_admission.start(cluster)
    with kai_admission.registered(cluster, admission): ...

It is called as KAI's operator registers it (pkg/operator/operands/admission/resources.go): for pods that name its scheduler by then.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from certs.authority import issue, make_ca
from tests.testcluster import thirdparty
from tests.testcluster.addons.kai import NAMESPACES, SCHEDULER
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process, free_port
from tests.testcluster.controlplane.starting import HOST, http_ok

NAME = "kai-admission"
MUTATING, VALIDATING = f"mutating-{NAME}", f"validating-{NAME}"
"""The names that KAI's operator gives the configurations (pkg/apis/kai/v1/admission), which decide the order of calls."""
RUNTIME_CLASS = "nvidia"
"""The one that it gives pods with a part of a GPU."""
_FOLDER = "k8s-webhook-server/serving-certs"
"""in the folder of temporary files: where controller-runtime looks for a certificate"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """One that runs."""

    process: Process
    port: int
    ca: str
    """as caBundle"""


def start(cluster: Cluster) -> Admission:
    """Ready, and not yet called. It ends with the cluster. Raises NoGo, BuildFailed, ClusterFailed."""
    program = thirdparty.program(thirdparty.KAI, "admission")
    folder = cluster.folder / NAME
    place = folder / _FOLDER
    place.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    ca = make_ca(now, name=NAME)
    leaf = issue(ca, [HOST], now)
    (place / "tls.crt").write_bytes(leaf.certificate_pem)
    (place / "tls.key").write_bytes(leaf.key_pem)
    reply = cluster.api.apply(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": RUNTIME_CLASS}, "handler": RUNTIME_CLASS}
    )
    assert reply.ok, reply.message
    port, health = free_port(), free_port()
    options = [
        f"--webhook-addr={port}", "--gpu-sharing-enabled=true", "--metrics-bind-address=0", f"--health-probe-bind-address={HOST}:{health}",
    ]  # fmt: skip
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "TMPDIR": str(folder)}
    process = cluster.processes.start(NAME, [str(program), *options], environment)
    cluster.wait_for(lambda: http_ok(f"http://{HOST}:{health}/readyz"), f"KAI's admission to be ready; its log is {process.log}")
    return Admission(process=process, port=port, ca=base64.b64encode(ca.certificate_pem).decode())


@contextmanager
def registered(cluster: Cluster, admission: Admission, mutating: str = MUTATING) -> Iterator[None]:
    """Called for pods, by a mutating configuration of this name; no longer on leaving."""
    made = [_configuration(admission, "Mutating", mutating), _configuration(admission, "Validating", VALIDATING)]
    try:
        for one in made:
            reply = cluster.api.apply(one)
            assert reply.ok, reply.message
        yield
    finally:
        for one in made:
            cluster.api.delete(one)


def _configuration(admission: Admission, phase: str, name: str) -> Raw:
    path = "/mutate--v1-pod" if phase == "Mutating" else "/validate--v1-pod"
    operations = ["CREATE"] if phase == "Mutating" else ["CREATE", "UPDATE"]
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACES[0]]}
    webhook = {
        "name": "admission.run.ai",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "namespaceSelector": {"matchExpressions": [excluded]},
        "clientConfig": {"url": f"https://{HOST}:{admission.port}{path}", "caBundle": admission.ca},
        "matchConditions": [{"name": "scheduler-name-match", "expression": f"object.spec.schedulerName == '{SCHEDULER}'"}],
        "rules": [{"operations": operations, "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "Namespaced"}],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{phase}WebhookConfiguration", "metadata": {"name": name}}
    again = {"reinvocationPolicy": "IfNeeded"} if phase == "Mutating" else {}
    return {**kind, "webhooks": [{**webhook, **again}]}
