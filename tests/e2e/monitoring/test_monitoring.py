"""Every panel, recording rule and alert on a real Prometheus that reads a real Berth and its audit, on a real control plane under load: a
panel without data is a failed test.

``make test`` has promtool evaluate every rule, and looks up every metric that a query names (``tests/deploy/monitoring``).
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import yaml

from tests.deploy.monitoring.alert_rules import RULES, rules
from tests.deploy.monitoring.dashboards import panels
from tests.e2e.certificates.shared import Installation, registered
from tests.e2e.monitoring.prometheus import Prometheus, started
from tests.support.cluster.faulty_proxy import Proxy
from tests.support.counts import only_in_prove
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import installed, nodes
from tests.testcluster.addons.audit import audit, install_reports
from tests.testcluster.addons.berth import Berth, create_namespace
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import control_plane, needs_programs

pytestmark = only_in_prove
POLICIES = Path(__file__).parent / "policies.yaml"
CHOSEN = {"$cluster": ".*", "$namespace": ".*", "$job": ".+", "$instance": ".+", "$__rate_interval": "10s"}
"""What Grafana puts in where all is chosen, and the interval that it reckons of one second between scrapes, times ten"""
SELECTOR = re.compile(r"(?<![\w:])(berth_\w+|process_\w+|apiserver_\w+|up|cluster_\w+:\w+:\w+)(\{[^}]*\})?(?=[\[\s)]|$)")
PANELS = panels()
NAMESPACES = ("research", "vision", "unjudged")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A cluster with a Berth that is called through ``proxy``, an audit, and a Prometheus that reads them."""

    cluster: Cluster
    berth: Berth
    proxy: Proxy
    prometheus: Prometheus
    numbers: Iterator[int]

    def load(self) -> None:
        """Pods of every decision, a workload, a claim; some of them while nobody answers; and a caller that speaks no TLS."""
        for namespace in NAMESPACES:
            for gpus in (1, 2, 9):
                self._pod(namespace, gpus)
            self._pod(namespace, 1, requests={"nvidia.com/gpu": "2"})
            self._pod(namespace, 1, nodeSelector={"nvidia.com/gpu.product": catalog().models("T4")[0].products[0]})
            self._pod(namespace, 1, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-none"})
            self._pod(namespace, 1, terminationGracePeriodSeconds=60, nodeSelector={"nvidia.com/gpu.family": "hopper"})
            self.cluster.api.try_create(_deployment(next(self.numbers)), namespace)
        host, _, port = self.berth.url.removeprefix("https://").rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=PATIENCE) as caller:
            caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
            caller.recv(1)
        self.proxy.deny()
        self.proxy.cut()
        assert not self._pod("research", 1), "an entry with failurePolicy Fail"
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": f"claim-{next(self.numbers)}"}}
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
        reply = self.cluster.api.try_create({**claim, "spec": {"devices": {"requests": [request]}}}, "research")
        assert reply.ok, f"an entry with failurePolicy Ignore: {reply.message}"
        self.proxy.deny(on=False)

    def _pod(self, namespace: str, gpus: int, requests: dict[str, str] | None = None, **spec: object) -> bool:
        limits = {"nvidia.com/gpu": str(gpus)}
        container = {"name": "c", "image": "c:1", "resources": {"limits": limits, "requests": requests or limits}}
        metadata = {"name": f"pod-{next(self.numbers)}"}
        pod: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}
        return self.cluster.api.try_create(pod, namespace).ok


def _deployment(number: int) -> Raw:
    container = {"name": "c", "image": "c:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    labels = {"app": f"d{number}"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"d{number}"}, "spec": spec}


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    needs_programs(request.config, ["prometheus"])
    with control_plane(request.session) as cluster:
        install_reports(cluster)
        installation = Installation(cluster=cluster, kubeconfig=installed.install(cluster))
        nodes.add(cluster, *nodes.bare_metal(catalog()))
        for name in NAMESPACES:
            create_namespace(cluster, name, {"team": "ml"} if name == "research" else {})
        for policy in yaml.safe_load_all(POLICIES.read_text()):
            assert cluster.api.apply(policy).ok
        file = cluster.folder / "audit.kubeconfig"
        installed.write_kubeconfig(file, cluster, installed.token(cluster, account=installed.AUDITOR))
        auditing = audit(cluster, "monitored", file)
        berth = installation.started("monitored")
        with registered(installation, berth) as proxy:
            installation.ready(berth)
            prometheus = started(cluster, RULES, berth, auditing.health.removeprefix("http://"))
            made = World(cluster=cluster, berth=berth, proxy=proxy, prometheus=prometheus, numbers=count())
            _loaded(made)
            yield made


def _loaded(world: World) -> None:
    """Load again and again, at least twice (a rate is of two scrapes that differ), until every query has data or time is over: the tests
    then name what has none."""
    until = time.monotonic() + PATIENCE
    for turn in count():
        world.load()
        time.sleep(2)
        if turn and (not any(not world.prometheus.has(query) for query in every_query()) or time.monotonic() > until):
            break


def chosen(query: str) -> str:
    """As Grafana sends it."""
    for name, value in CHOSEN.items():
        query = query.replace(name, value)
    return query


def every_query() -> list[str]:
    """Of all panels and alerts, and what is recorded."""
    panels = [chosen(target["expr"]) for _, panel in PANELS for target in panel["targets"]]
    return [
        *panels,
        *(rule["record"] for rule in rules("record")),
        *dict.fromkeys(one for rule in rules("alert") for one in selectors(rule["expr"])),
    ]


def selectors(expr: str) -> list[str]:
    """What an expression reads."""
    return [f"{found[1]}{found[2] or ''}" for found in SELECTOR.finditer(expr)]


@pytest.mark.parametrize(("uid", "panel"), PANELS, ids=[f"{uid}: {panel['title']}" for uid, panel in PANELS])
def test_a_panel_has_data(world: World, uid: str, panel: Raw) -> None:
    """Each of its queries is understood, and has at least one number."""
    assert [target["expr"] for target in panel["targets"] if not world.prometheus.has(chosen(target["expr"]))] == []


def test_every_rule_is_healthy(world: World) -> None:
    """Prometheus evaluates all of them without an error."""
    found = world.prometheus.rules()
    assert {rule["name"] for rule in found} == {rule.get("alert") or rule["record"] for rule in (*rules("alert"), *rules("record"))}
    assert [(rule["name"], rule.get("lastError")) for rule in found if rule["health"] != "ok"] == []


@pytest.mark.parametrize("rule", rules("record"), ids=lambda rule: str(rule["record"]))
def test_what_is_recorded_has_data(world: World, rule: Raw) -> None:
    """By its name, under which dashboards and alerts ask for it."""
    assert world.prometheus.has(rule["record"])


@pytest.mark.parametrize("rule", rules("alert"), ids=lambda rule: str(rule["alert"]))
def test_an_alert_reads_what_is_there(world: World, rule: Raw) -> None:
    """Whatever it selects exists, with these labels and values: an alert on a misspelled metric is silent for ever."""
    read = selectors(rule["expr"])
    assert read
    assert [one for one in read if not world.prometheus.has(f"count({one})")] == []


def test_the_choices_of_the_dashboards_have_values(world: World) -> None:
    """Those of Berth and its audit, and of nobody else."""
    match = '{__name__=~"berth_build_info|berth_audit_pods"}'
    jobs = {one["job"] for one in world.prometheus.asked("/api/v1/series", **{"match[]": match})}
    assert jobs == {"berth-system/berth", "berth-system/berth-audit"}


def test_money_and_models_are_of_the_right_namespace(world: World) -> None:
    """The namespace of the pods, though the target has a label namespace of its own."""
    found = world.prometheus.asked("/api/v1/query", query='berth_admitted_gpus_total{model="T4"}')["result"]
    assert {one["metric"]["resource_namespace"] for one in found} == set(NAMESPACES)
    assert {one["metric"]["namespace"] for one in found} == {"berth-system"}
    assert all(float(one["value"][1]) >= 2 for one in found)


def test_pods_wait_for_what_they_wait_for(world: World) -> None:
    """A label that no node has, and in a namespace without policies the taint that nobody tolerates."""
    for reason in ("label", "taint"):
        assert world.prometheus.numbers(f'berth_pods_waiting{{reason="{reason}"}} > 0'), reason


def test_what_passed_unjudged_wakes_somebody_and_nothing_else_does(world: World) -> None:
    """The claims that were created while nobody answered; all other alerts are silent, or wait to see whether it goes on."""
    found = [one for one in world.prometheus.asked("/api/v1/alerts")["alerts"] if one["state"] == "firing"]
    summaries = {one["annotations"]["summary"] for one in found}
    assert {one["labels"]["alertname"] for one in found} == {"BerthFailedOpen"}, summaries
    assert all(
        re.fullmatch(r"The API server admitted objects without evaluation by \w+\.[\w-]+\.berth\.dev\.", summary) for summary in summaries
    )
