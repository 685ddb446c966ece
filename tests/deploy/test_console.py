"""The Deployment of `berth console`, its account, and how people reach it."""

from __future__ import annotations

from console.access.rights import CLUSTER_WIDE, NAMESPACED, REPORTS
from sources.scanned_cluster import scanned_kinds
from sources.state import OURS
from tests.deploy.rendering import Raw, component, of_kind, rendered, the
from tests.deploy.variants import VARIANTS
from tests.support.generators.random_worlds import catalog

CONSOLE = "berth-console"
ON = {"console": {"enabled": True}}
REVIEWS = {("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")}


def spec(objects: list[Raw]) -> Raw:
    """Of the pod."""
    found: Raw = the(objects, "Deployment", of=CONSOLE)["spec"]["template"]["spec"]
    return found


def test_it_is_there_only_if_it_is_asked_for() -> None:
    """Nothing of it is in the usual installation."""
    assert [one for one in rendered() if component(one) == CONSOLE] == []
    kinds_of_it = {one["kind"] for one in rendered(ON) if component(one) == CONSOLE}
    assert kinds_of_it == {"Deployment", "Service", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


def test_it_reads_what_pages_are_made_of_and_writes_nothing() -> None:
    """Exactly the kinds that are read, and whose lists people's rights are about; of writes only the two reviews, which store nothing."""
    rules = the(rendered(ON), "ClusterRole", of=CONSOLE)["rules"]
    may = {(group, plural): tuple(rule["verbs"]) for rule in rules for group in rule["apiGroups"] for plural in rule["resources"]}
    read = {(kind.group, kind.plural) for kind in (*OURS, *scanned_kinds(catalog()))}
    read |= {(kind.group, kind.plural) for kind in (*NAMESPACED.values(), *CLUSTER_WIDE.values(), *REPORTS)}
    assert {kind for kind, verbs in may.items() if verbs == ("create",)} == REVIEWS
    assert {kind for kind, verbs in may.items() if verbs == ("get", "list")} == read
    assert len(may) == len(read) + len(REVIEWS)
    assert not any("*" in rule[field] for rule in rules for field in ("apiGroups", "resources", "verbs"))


def test_it_runs_as_restricted_as_a_replica() -> None:
    """What the level `restricted` of Pod Security asks for; its certificate is in a file system in memory, or in a Secret."""
    objects = rendered(ON)
    replica = the(objects, "Deployment")["spec"]["template"]["spec"]
    [container] = spec(objects)["containers"]
    assert {**replica["securityContext"], "fsGroup": 65532} == {"fsGroup": 65532, **spec(objects)["securityContext"]}
    assert container["securityContext"] == replica["containers"][0]["securityContext"]
    assert spec(objects)["volumes"][0]["emptyDir"]["medium"] == "Memory"
    assert "--self-signed=/var/lib/berth/tls" in container["args"]
    mine = VARIANTS["console"].objects()
    assert spec(mine)["volumes"][0]["secret"]["secretName"] == "console-tls"
    assert "--tls-cert=/etc/berth/tls/tls.crt" in spec(mine)["containers"][0]["args"]


def test_nothing_of_the_server_selects_it() -> None:
    """Neither a Service, nor a budget, nor the network policy of the replicas; its own do."""
    objects = VARIANTS["console"].objects()
    labels = the(objects, "Deployment", of=CONSOLE)["spec"]["template"]["metadata"]["labels"]
    selectors = [(one, one["spec"]["selector"]) for one in of_kind(objects, "Service")]
    selectors += [(one, one["spec"]["selector"]["matchLabels"]) for one in of_kind(objects, "PodDisruptionBudget")]
    selectors += [(one, one["spec"]["podSelector"]["matchLabels"]) for one in of_kind(objects, "NetworkPolicy")]
    chosen = [one for one, selector in selectors if selector.items() <= labels.items()]
    assert sorted(one["kind"] for one in chosen) == ["NetworkPolicy", "Service"]
    assert {component(one) for one in chosen} == {CONSOLE}


def test_people_reach_it_by_its_address() -> None:
    """The Ingress has the host of `url`, and leads to the Service; the port is that of the container and its probes."""
    objects = VARIANTS["console"].objects()
    [ingress] = of_kind(objects, "Ingress")
    assert ingress["spec"]["rules"][0]["host"] == ingress["spec"]["tls"][0]["hosts"][0] == "gpus.example.com"
    service = the(objects, "Service", of=CONSOLE)
    assert ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"] == {
        "name": service["metadata"]["name"],
        "port": {"name": "https"},
    }
    [container] = spec(objects)["containers"]
    [port] = container["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    assert {"--listen=:9443", "--url=https://gpus.example.com", "--session=30m", "--audience=berth-console"} <= set(container["args"])
    assert (port["containerPort"], container["args"][-1]) == (9443, "--every=60")
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    assert {(one["port"], one["scheme"]) for one in probes} == {(port["name"], "HTTPS")}
