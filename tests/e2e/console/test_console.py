"""A console in a real cluster, over TLS: everybody sees what they may list, and nothing else, while their token is good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from cli import crds
from console.screens import SCREENS
from tests.support.console import in_cluster, shared_cluster
from tests.support.console.in_cluster import Console
from tests.support.console.shared_cluster import PEOPLE, Names, Someone, may_list, random_rules, rule, someone, token_of
from tests.support.console.visible_names import VisibleNames
from tests.support.counts import count
from tests.testcluster.controlplane import restarting
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import control_plane

MANY = count(4, 25)
PAIRS = count(20, 200)
ADDRESSES = count(25, 400)
"""Pages that are looked for from the first ones on, by the links on them."""
SEED = 19


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Without kubelets and schedulers' work: what runs where is written into the pods."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as started:
        apply_crds(started.api, sorted(crds.FOLDER.glob("*.yaml")), started.processes)
        assert started.api.apply(shared_cluster.POOLS).ok
        started.wait_for(lambda: started.api.call("GET", "/apis/karpenter.sh/v1/nodepools").ok, "NodePools to be served")
        yield started


@pytest.fixture(scope="module")
def names(plane: Cluster) -> Names:
    return shared_cluster.fill(plane, Random(SEED), count(6, 20))


@pytest.fixture(scope="module")
def console(plane: Cluster, names: Names) -> Console:
    """With the rights of the chart."""
    return in_cluster.start(plane, "rights", shared_cluster.account(plane.api))


def granted(plane: Cluster, who: Someone, group: str, plural: str, namespace: str = "") -> None:
    """Wait until a binding is in force; those made before it are then too."""
    plane.wait_for(lambda: may_list(who, group, plural, namespace), "the bindings to be in force")


def test_nobody_sees_a_name_that_they_may_not_list(plane: Cluster, names: Names, console: Console) -> None:
    """Random people with random rights ask for random pages, among them those that only links of an administrator's pages lead to: not one
    name is on them that the API server would not list for that person."""
    random = Random(SEED)
    people = [someone(plane.api, f"person-{number}", *random_rules(random, names, number)) for number in range(MANY)]
    root = someone(plane.api, "root", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    granted(plane, root, "", "pods")
    all_seen = console.browser()
    assert all_seen.sign_in(root.token).status == 303
    addresses = [screen.path for screen in SCREENS]
    pages: dict[str, str] = {}
    while len(pages) < ADDRESSES and (left := [one for one in addresses if one not in pages]):
        address = random.choice(left)
        page = all_seen.get(address)
        pages[address] = page.plain
        addresses += [one for one in page.links if not one.startswith("/static/") and one not in addresses]
    visible = [VisibleNames(who, names) for who in people]
    browsers = [console.browser() for _ in people]
    for browser, who in zip(browsers, people, strict=True):
        assert browser.sign_in(who.token).status == 303
    withheld = shown = 0
    for _ in range(PAIRS):
        number, address = random.randrange(MANY), random.choice(sorted(pages))
        assert not visible[number].leaks(browsers[number], address), (people[number].name, address)
        page = browsers[number].get(address)
        withheld += sum(name in pages[address] for name in visible[number].forbidden)
        shown += page.status == 200 and any(name in page.text for name in (*names.namespaces, *names.cluster_policies))
    for _ in range(PAIRS):
        number = random.randrange(MANY)
        assert not visible[number].leaks(browsers[number], "/job", typed(random, names)), people[number].name
    assert withheld > PAIRS, "the pages have names that are not for everybody"
    assert shown > PAIRS / 10, "the pages have names"


def typed(random: Random, names: Names) -> dict[str, str]:
    """What somebody may send from My job: a pod that would go to some namespace or node, and perhaps a policy in place of another one."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": str(random.choice((1, 2, 3)))}}}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "registry.example/c:1", **limits}]}
    if random.random() < 0.5:
        spec["nodeName"] = random.choice(names.nodes)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine", "namespace": random.choice(names.namespaces)}, "spec": spec}
    namespace, name = random.choice(names.own_policies)
    of_all = {"kind": "ClusterGPUPolicy", "metadata": {"name": random.choice(names.cluster_policies)}}
    policy = random.choice((None, of_all, {"kind": "GPUPolicy", "metadata": {"name": name, "namespace": namespace}}))
    strict = {"apiVersion": "berth.dev/v1alpha1", "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 1}}}}
    return {"manifest": json.dumps(pod), "namespace": "", "policy_text": "" if policy is None else json.dumps(policy | strict)}


def test_two_people_see_their_own(plane: Cluster, names: Names, console: Console) -> None:
    """Ada sees the pods of her namespace and the guardrails, Bob those of his; somebody without rights sees an empty page."""
    hers, his = names.namespaces[:2]
    ada = someone(plane.api, "ada", [rule("berth.dev", "clustergpupolicies")], [(hers, [rule("", "pods")])])
    bob = someone(plane.api, "bob", [rule("berth.dev", "clustergpupolicies")], [(his, [rule("", "pods")])])
    nobody = someone(plane.api, "nobody")
    granted(plane, bob, "", "pods", his)
    found = {}
    for who in (ada, bob, nobody):
        browser = console.browser()
        assert browser.get("/impact").headers["location"] == "/login?next=%2Fimpact"
        assert browser.sign_in(who.token).headers["location"] == "/impact"
        found[who.name] = browser.get("/impact").plain
    assert (hers in found["ada"], his in found["ada"]) == (True, False)
    assert (hers in found["bob"], his in found["bob"]) == (False, True)
    assert f"system:serviceaccount:people:{ada.name}" in found["ada"]
    assert not [one for one in (*names.namespaces, *names.cluster_policies, *names.nodes) if one in found["nobody"]]


def test_what_a_proxy_sends_is_reviewed_too(plane: Cluster, names: Names, console: Console) -> None:
    """A bearer token in place of a session: the same page, no cookie, no button to sign out; a wrong one gets 401, and headers that name a
    person get nothing."""
    carol = someone(plane.api, "carol", (), [(names.namespaces[2], [rule("", "pods"), rule("berth.dev", "gpupolicies")])])
    granted(plane, carol, "", "pods", names.namespaces[2])
    browser = console.browser()
    page = browser.get("/impact", authorization=f"Bearer {carol.token}")
    assert (page.status, browser.cookies) == (200, {})
    assert "people:carol" in page.text
    assert "Sign out" not in page.text
    assert browser.get("/impact", authorization="Bearer wrong").status == 401
    claims = {"x_remote_user": "root", "x_forwarded_user": "root", "impersonate_user": "root", "x_remote_group": "system:masters"}
    assert browser.get("/impact", **claims).status == 303


def test_a_session_ends_with_its_token(plane: Cluster, names: Names) -> None:
    """Of a token that is revoked, and of one that ends: the login page, which leads back to the page that was open; htmx is told to go
    there whole."""
    console = in_cluster.start(plane, "sessions", shared_cluster.account(plane.api), reviewed=in_cluster.NEW)
    dave = someone(plane.api, "dave", [rule("berth.dev", "clustergpupolicies")], [(names.namespaces[0], [rule("", "pods")])])
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dave", "namespace": PEOPLE}}
    uid = plane.api.create(secret)["metadata"]["uid"]
    bound = {"apiVersion": "v1", "kind": "Secret", "name": "dave", "uid": uid}
    browser = console.browser()
    assert browser.sign_in(token_of(plane.api, PEOPLE, dave.name, bound=bound)).status == 303
    page = f"/impact/cell?{urlencode({'policy': f'ClusterGPUPolicy/{names.cluster_policies[0]}'})}"
    plane.wait_for(lambda: browser.get(page).status == 200, "the rights to be in force")
    plane.api.delete(secret)
    plane.wait_for(lambda: browser.get("/state").status == 303, "the API server to see it")  # it remembers tokens for 10 s
    sent = browser.get(page)
    assert (sent.status, parse_qs(urlsplit(sent.headers["location"]).query)) == (303, {"next": [page]})
    part = browser.get("/state", hx_request="true", hx_current_url=f"https://127.0.0.1{page}")
    assert (part.status, parse_qs(urlsplit(part.headers["hx-redirect"]).query)) == (401, {"next": [page]})
    again = browser.post("/login", {"token": dave.token, "next": page})
    assert (again.status, again.headers["location"]) == (303, page)
    assert browser.get(page).status == 200
    assert [one["user"] for one in console.events("session_ended")] == ["system:serviceaccount:people:dave"]
    assert dave.token not in console.process.log.read_text()
    plane.processes.end(console.process)


def test_a_namespace_that_comes_is_asked_for(plane: Cluster, names: Names, console: Console) -> None:
    """Whose pods somebody may list from the beginning, within the time for which answers count: it was not there when they were asked."""
    erin = someone(plane.api, "erin", [rule("berth.dev", "clustergpupolicies")], [(names.namespaces[0], [rule("", "pods")])])
    granted(plane, erin, "", "pods", names.namespaces[0])
    browser = console.browser()
    browser.sign_in(erin.token)
    assert names.namespaces[0] in browser.get("/impact").text
    new = "late-0123456789"
    more = Names(nodes=names.nodes)
    shared_cluster.add_namespace(plane.api, Random(SEED + 1), more, new)
    shared_cluster.grant(plane.api, erin.name, new, [rule("", "pods")])
    granted(plane, erin, "", "pods", new)
    plane.wait_for(lambda: new in browser.get("/impact").text, "the namespace to be shown")


def test_an_api_server_that_is_gone_is_told(plane: Cluster, names: Names) -> None:
    """A page says since when, and so does a part of one; nobody is signed out, and what was open opens again once it is back."""
    console = in_cluster.start(plane, "faults", shared_cluster.account(plane.api), reviewed=in_cluster.NEW)
    frank = someone(plane.api, "frank", (), [(names.namespaces[0], [rule("", "pods"), rule("berth.dev", "gpupolicies")])])
    browser = console.browser()
    assert browser.sign_in(frank.token).status == 303
    assert browser.get("/impact").status == 200
    restarting.kill(plane, "kube-apiserver")
    page, part = browser.get("/impact"), browser.get("/state", hx_request="true")
    assert (page.status, part.status) == (503, 503)
    assert "It has not answered permission checks since 2" in page.text
    assert "Traceback" not in page.text
    assert part.text.startswith('<p role="status"')
    assert console.browser().sign_in(frank.token).status == 503
    assert (console.browser().get("/readyz").status, console.browser().get("/livez").status) == (200, 200)
    restarting.start(plane, "kube-apiserver")
    plane.wait_for(lambda: browser.get("/impact").status == 200, "the page to come back")
    assert not console.events("failed")
    plane.processes.end(console.process)
    assert console.process.popen.returncode == 0
    assert console.events("stopped")
