"""A second mutating webhook beside Berth: its server, and its registration under names that sort before Berth's and after it.

It does to a pod what the pod's label DOES names, and is called where its label WHEN says: one server, registered once, serves all cases.
"""

from __future__ import annotations

import base64
import copy
import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path

from certs.authority import issue, make_ca
from tests.testcluster.addons.berth import SCOPE
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

DOES, WHEN = "second.example/does", "second.example/when"
POSITIONS: Mapping[str, str] = {"before": "aa-second", "after": "zzz-second"}
"""The API server calls webhooks in the order of their configurations' names; Berth's begins with zz-berth."""
POLICIES = ("Never", "IfNeeded")
WHENS = tuple(f"{position}-{policy}" for position, policy in product(POSITIONS, POLICIES))
Meddle = Callable[[Raw], None]
"""Changes a pod in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """One that runs."""

    url: str
    ca: bytes
    does: Mapping[str, Meddle]
    calls: Counter[str] = field(default_factory=Counter)
    """by the pod's name"""

    def answer(self, review: Raw) -> Raw:
        """The AdmissionReview that answers one: what was changed of labels, annotations, owners and spec, as JSON Patch."""
        request = review["request"]
        before: Raw = request["object"]
        after = copy.deepcopy(before)
        self.calls[before["metadata"].get("name", "")] += 1
        self.does[before["metadata"]["labels"][DOES]](after)
        response = {"uid": request["uid"], "allowed": True}
        if patch := list(_changes(before, after)):
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    def configurations(self, scope: str) -> list[Raw]:
        """For pods of namespaces labelled SCOPE: ``scope``, whose own label WHEN says at which place and how often it is called."""
        return [self._configuration(position, scope) for position in POSITIONS]

    def _configuration(self, position: str, scope: str) -> Raw:
        metadata = {"name": f"{POSITIONS[position]}-{scope}"}
        webhooks = [self._entry(position, policy, scope) for policy in POLICIES]
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
        return {**kind, "metadata": metadata, "webhooks": webhooks}

    def _entry(self, position: str, policy: str, scope: str) -> Raw:
        return {
            "name": f"{position}.{policy.lower()}.second.example",
            "clientConfig": {"url": self.url, "caBundle": base64.b64encode(self.ca).decode()},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 30,
            "failurePolicy": "Fail",
            "reinvocationPolicy": policy,
            "namespaceSelector": {"matchLabels": {SCOPE: scope}},
            "objectSelector": {"matchLabels": {WHEN: f"{position}-{policy}"}},
        }


def _changes(before: Raw, after: Raw) -> Iterator[Raw]:
    for path in (("metadata", "labels"), ("metadata", "annotations"), ("metadata", "ownerReferences"), ("spec",)):
        old, new = before, after
        for key in path:
            old, new = old.get(key, {}), new.get(key, {})
        if old != new:
            yield {"op": "add", "path": f"/{'/'.join(path)}", "value": new}


@contextmanager
def serving(folder: Path, does: Mapping[str, Meddle]) -> Iterator[Second]:
    """Served on a port of 127.0.0.1 with a certificate of its own until leaving. ``folder``: for its key. ``does``: by the label DOES."""
    now = datetime.now(UTC)
    ca = make_ca(now)
    pair = issue(ca, ["127.0.0.1"], now)
    (folder / "second.pem").write_bytes(pair.key_pem + pair.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "second.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        second = Second(url=f"https://127.0.0.1:{server.server_port}/", ca=ca.certificate_pem, does=does)
        server.RequestHandlerClass = _handler(second)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield second
        finally:
            server.shutdown()
            thread.join()


def _handler(second: Second) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """HTTP/1.0: each call has a connection of its own, so none is left open at the end."""
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps(second.answer(review)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the API server's log has it."""

    return Handler


@contextmanager
def registered(cluster: Cluster, second: Second, scope: str, namespace: str) -> Iterator[None]:
    """In force, as dry runs in ``namespace`` have shown; gone on leaving. ``second`` must do nothing to pods labelled DOES: nothing."""
    values = second.configurations(scope)
    try:
        for value in values:
            assert (reply := cluster.api.apply(value)).ok, reply.message
        for when in WHENS:
            cluster.wait_for(lambda when=when: _called(cluster, second, when, namespace), f"the webhook to be called {when}")  # type: ignore[misc]
        yield
    finally:
        for value in values:
            cluster.api.delete(value)


def _called(cluster: Cluster, second: Second, when: str, namespace: str) -> bool:
    name = f"try-{when.lower()}"
    spec = {"containers": [{"name": "main", "image": "i:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {DOES: "nothing", WHEN: when}}, "spec": spec}
    assert (reply := cluster.api.try_create(pod, namespace, dry_run=True)).ok, reply.message
    return second.calls[name] > 0
