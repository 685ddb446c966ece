"""The screen "My job": the list, one pod, a manifest, and the playground, as pages; what they say is what the commands say."""

from __future__ import annotations

import asyncio
import copy
import html
import io
import json
import re
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.admission_preview import Admission
from analysis.why.explain import Explainer
from analysis.why.surroundings import Surroundings, made_of
from analysis.world.world import World
from cli.inspect.try_ import Trial
from cli.output import manifests
from console.job.pages import surroundings_in_dump
from console.screens import SCREENS
from console.serve import Fixed
from console.server.app import application
from console.world.scope import ALL, EVERYTHING, ListableNamespaces, ListedKind, Scope
from policies.document import InputError
from policies.policy import API_VERSION
from policies.state.updater import Options
from sources.inputs import Inputs
from tests.support.cases import golden
from tests.support.console.asked import Answered, Somebody, answer, asked
from tests.support.console.worlds import world
from tests.support.counts import count
from tests.support.recorded import eks, gke, on_premises

Raw = dict[str, Any]
ROOT = Path(__file__).parents[3]
TRAIN = (ROOT / "docs" / "examples" / "train.yaml").read_text()
REVIEWS = sorted((ROOT / "tests" / "reviews").glob("*.json"))
CLUSTERS = {"eks": eks.objects, "gke": gke.objects, "on_premises": on_premises.objects}
CASES = [
    case
    for case in golden.cases()
    if case.given["pod"] is not None
    and (case.given["user"], case.given["operation"], case.given["phase"]) == ("alice", "CREATE", "mutate")
    and not (case.given["catalog"] or case.given["groups"])
]
WEB = Scope(who="ada", pods=ListableNamespaces(names=frozenset({"web"})))


@cache
def recorded(name: str = "eks") -> World:
    return world(CLUSTERS[name]())


def words(answer: Answered) -> str:
    """The text of a page, without tags."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", answer.text)))


def verdict(answer: Answered) -> str:
    """The sentence of the verdict."""
    found = re.search(r'aria-label="Verdict">\s*<p>(?:<span class="hidden">\w+: </span>)?(.*?)</p>', answer.text, re.DOTALL)
    assert found is not None, words(answer)
    return html.unescape(found.group(1))


def policy(name: str = "few", **spec: Any) -> Raw:
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"mode": "Enforce", **spec}}


def tried(at: World, text: str) -> str:
    """What `berth try` prints of it on standard error."""
    out = Trial(
        admission=Admission(at.snapshot),
        inputs=Inputs.of_text(text, "manifest", "web"),
        as_served=False,
        out=manifests.output("yaml", io.StringIO()),
        err=io.StringIO(),
    )
    out.run()
    assert isinstance(out.err, io.StringIO)
    return out.err.getvalue()


def same_as_tried(at: World, text: str, namespace: str = "web") -> None:
    answer = asked(at, "/job", form={"manifest": text, "namespace": namespace})
    assert answer.status == 200
    if not re.search('aria-label="Verdict"', answer.text):
        pytest.fail(words(answer)[:500])
    lines = tried(at, text).splitlines()
    denied = ": denied" in lines[0]
    assert verdict(answer).startswith("Denied") == denied
    if not denied and "admitted" in lines[0]:
        said = lines[0].rpartition(": ")[2].partition(";")[0]
        assert said.lower() in verdict(answer).lower()
    page = words(answer)
    for code in re.findall(r"^  (?:in \S+: )?(BERTH-1\d\d)", "\n".join(lines), re.MULTILINE):
        assert code in page


@pytest.mark.parametrize("file", REVIEWS, ids=lambda file: file.stem)
def test_the_verdict_is_that_of_berth_try_on_recorded_reviews(file: Path) -> None:
    """Admitted with so many edits, or denied with these codes."""
    same_as_tried(recorded(), file.read_text())


@pytest.mark.parametrize("case", CASES[:: max(1, len(CASES) // count(15, 600))], ids=lambda case: case.name)
def test_the_verdict_is_that_of_berth_try_on_golden_cases(case: golden.Case) -> None:
    """Under the policies and facts of the case."""
    given = case.given
    policies = None if given["policies"] == "library" else [{"apiVersion": API_VERSION, **one} for one in given["policies"]]
    queues = tuple(given["queues"])
    options = Options(platforms=tuple(given["platforms"]), mig_strategy=given["migStrategy"], queues=queues, max_mode=given["maxMode"])
    pod = {"apiVersion": "v1", "kind": "Pod", **given["pod"]}
    pod["metadata"] = {**(pod.get("metadata") or {}), "namespace": given["namespace"]}
    plain = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain"}}] if given["facts"] else []
    same_as_tried(world([*given["facts"], *plain], policies, options=options), json.dumps(pod), given["namespace"])


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_pod_is_explained_as_berth_why_explains_it(name: str) -> None:
    """Outlook by place, and the smallest change as a manifest."""
    at = recorded(name)
    waiting = [pod.stored for pod in at.ledger.pods.values() if not pod.stored.node and not pod.stored.finished]
    assert waiting
    for pod in waiting:
        near = surroundings_in_dump(at, pod.namespace, "Pod", pod.name)
        explainer = Explainer(Admission(at.snapshot), at.seen.fleet, at.prices)
        found = explainer.of_object(f"pod/{pod.name}", near, made_of(near, at.snapshot.catalog))
        answer = asked(at, "/job", pod=f"{pod.namespace}/{pod.name}")
        assert answer.status == 200
        assert (found.outlook == "never") == ("nothing in the cluster can run it" in verdict(answer))
        assert answer.text.count('class="places"') == (1 if found.where else 0)
        fix = re.search(r'<pre id="fix-yaml"[^>]*>(.*?)</pre>', answer.text, re.DOTALL)
        assert (None if fix is None else yaml.safe_load(html.unescape(fix.group(1)))) == found.value


def test_the_list_has_what_waits_first_and_can_be_searched() -> None:
    """Pods without a node, and then those with one."""
    at = recorded()
    text = asked(at, "/job").text
    states = re.findall(r'<span class="soon \w*">(pods denied|pending|running|finished)</span>', text)
    assert states == sorted(states, key=("pods denied", "pending", "running", "finished").index)
    assert "pending" in states
    found = re.findall(r'href="/job\?pod=([^"]+)"', asked(at, "/job", q="llama research").text)
    assert found
    assert all("llama" in one for one in found)
    assert "No pod that you may list" in words(asked(at, "/job", q="nothing-like-it"))


def test_a_workload_whose_pods_are_denied_comes_first() -> None:
    """By the Event of its controller; its page says why, and whose words those are."""
    metadata = {"name": "big", "namespace": "web", "uid": "u-big"}
    container = {"name": "c", "image": "i:1", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
    }
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "web"}, "reason": "FailedCreate", "type": "Warning",
        "message": "Error creating: denied the request", "lastTimestamp": "2026-11-24T07:59:00Z",
        "involvedObject": {"kind": "Job", "namespace": "web", "name": "big", "uid": "u-big"}, "source": {"component": "job-controller"},
    }  # fmt: skip
    at = world([*eks.objects(), job, event], [policy(require={"gpusPerPod": {"max": 4}})])
    assert re.findall(r'href="(/job\?(?:pod|workload)=[^"]+)"', asked(at, "/job").text)[0] == "/job?workload=web/Job/big"
    answer = asked(at, "/job", workload="web/Job/big")
    assert verdict(answer) == "Its pods are denied: the pod requests 8 GPUs, more than the 4 allowed here."
    assert "denied the request" in words(answer)
    assert "request at most 4" in words(answer)
    hidden = replace(EVERYTHING, events=ListableNamespaces(), pods=ALL)
    assert "denied the request" not in words(asked(at, "/job", hidden, workload="web/Job/big"))
    assert "you may not list events in namespace web" in words(asked(at, "/job", hidden, workload="web/Job/big"))


def test_each_line_has_the_policy_that_wrote_it() -> None:
    """And lines that the author wrote have none."""
    answer = asked(recorded(), "/job", form={"manifest": TRAIN, "namespace": "research"})
    rows = re.findall(r'<tr class="(\w+)"><td><code>(.*?)</code></td><td>(.*?)</td>', answer.text, re.DOTALL)
    assert [row for row in rows if row[0] in ("added", "removed") and "GPUPolicy/" not in row[2]] == []
    assert [row for row in rows if row[0] == "same" and row[2]] == []
    by = {re.sub(r"^\W+", "", html.unescape(text)): re.sub(r"<[^>]+>", "", who) for mark, text, who in rows if mark == "added"}
    assert by["tolerations:"] == "ClusterGPUPolicy/berth-default (tolerations)"
    assert "checkpoint_grace" in by["terminationGracePeriodSeconds: 120"]


def test_another_policy_is_tried_in_place_of_its_own() -> None:
    """The verdict is that of a world that has it; the next page is under the world's own again."""
    at = recorded()
    small = yaml.safe_dump(policy("berth-default", require={"gpusPerPod": {"max": 1}}))
    form = {"manifest": TRAIN.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 2"), "namespace": "web"}
    before = verdict(asked(at, "/job", form=form))
    assert "Admitted" in before
    answer = asked(at, "/job", form={**form, "policy_text": small})
    assert verdict(answer) == "Denied: the pod requests 2 GPUs, more than the 1 allowed here."
    assert html.escape(small.splitlines()[0]) in answer.text
    assert verdict(asked(at, "/job", form=form)) == before
    shown = asked(at, "/job", form={**form, "policy": "ClusterGPUPolicy/training", "show": "1"}).text
    assert "name: training" in shown
    kept = asked(at, "/job", form={**form, "policy": "ClusterGPUPolicy/training", "policy_text": small}).text
    assert "max: 1" in kept


def test_what_is_wrong_is_said_and_what_was_typed_stays() -> None:
    """Of manifest and policy, in the words of `berth try`."""
    at = recorded()
    wrong = policy(require={"families": {"in": ["hoper"]}})
    answer = asked(at, "/job", form={"manifest": TRAIN, "namespace": "web", "policy_text": yaml.safe_dump(wrong)})
    assert 'spec.require.families.in[0]: unknown GPU family "hoper"; did you mean "hopper"?' in words(answer)
    assert "hoper" in answer.text.rpartition("<textarea")[2]
    answer = asked(at, "/job", form={"manifest": TRAIN + "---\nkind: [\n", "namespace": "web"})
    assert "document 2" in words(answer)
    assert "Admitted" in verdict(answer)
    answer = asked(at, "/job", form={"manifest": "kind: Pod\nkind: Job\n"})
    assert "manifest, line 2" in words(answer)
    assert "kind: Pod\nkind: Job" in html.unescape(answer.text)


def test_facts_beside_a_manifest_count() -> None:
    """A policy selects the namespace by the label that the text gives it."""
    at = world(
        eks.objects(),
        [
            {
                **policy(require={"gpusPerPod": {"max": 1}}),
                "spec": {
                    "mode": "Enforce",
                    "match": {"namespaceSelector": {"matchLabels": {"tier": "small"}}},
                    "require": {"gpusPerPod": {"max": 1}},
                },
            }
        ],
    )
    two = TRAIN.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 2")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web, labels: {tier: small}}\n---\n"
    assert "Admitted" in verdict(asked(at, "/job", form={"manifest": two, "namespace": "web"}))
    assert verdict(asked(at, "/job", form={"manifest": namespace + two, "namespace": "web"})).startswith("Denied")


def test_of_several_objects_one_is_chosen() -> None:
    """The first that has pods, or the one that is asked for."""
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\n---\n{TRAIN}\n---\n{TRAIN.replace('name: train', 'name: other')}"
    first = asked(recorded(), "/job", form={"manifest": text, "namespace": "web"})
    second = asked(recorded(), "/job", form={"manifest": text, "namespace": "web", "object": "2"})
    assert ("Job train" in first.text, "<h1>Job other" in second.text) == (True, True)
    assert '<option value="2" selected>Job other</option>' in second.text


def test_a_form_and_an_address_say_the_same() -> None:
    """Without scripts, and as a link."""
    fields = {"manifest": TRAIN, "namespace": "web"}
    assert verdict(asked(recorded(), "/job", form=fields)) == verdict(asked(recorded(), "/job", EVERYTHING, None, **fields))


def test_rights_hold() -> None:
    """No pod, manifest, policy or node of what may not be listed; denials name their policies as admission does."""
    at = recorded()
    assert asked(at, "/job", WEB, pod="research/llama-0-0").status == 404
    assert asked(at, "/job", WEB, pod="research/no-such-pod").text == asked(at, "/job", WEB, pod="research/llama-0-0").text
    assert "research" not in words(asked(at, "/job", WEB))
    assert "you may not list pods in research" in words(asked(at, "/job", WEB, form={"manifest": TRAIN, "namespace": "research"}))
    answer = asked(at, "/job", WEB, form={"manifest": TRAIN, "namespace": "web"})
    assert "Ask for the right to list nodes" in verdict(answer)
    nodes = [node.name for node in at.seen.fleet.nodes]
    assert [name for name in nodes if name in answer.text] == []
    assert "Sooner or cheaper" not in answer.text
    answer = asked(at, "/job", WEB, form={"manifest": TRAIN, "namespace": "web", "policy_text": yaml.safe_dump(policy("nobody-has-this"))})
    assert "you may not list ClusterGPUPolicies" in words(answer)
    assert asked(at, "/job", WEB, form={"manifest": TRAIN, "policy": "ClusterGPUPolicy/training", "show": "1"}).status == 404


def test_what_policies_in_audit_would_do_is_for_those_who_may_list_them() -> None:
    """Their names are in no answer of admission."""
    at = world(
        eks.objects(),
        [{**policy("secret", require={"gpusPerPod": {"max": 1}}), "spec": {"mode": "Audit", "require": {"gpusPerPod": {"max": 1}}}}],
    )
    form = {"manifest": TRAIN.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 2"), "namespace": "web"}
    assert "ClusterGPUPolicy/secret (Audit) would" in words(asked(at, "/job", form=form))
    assert "secret" not in asked(at, "/job", WEB, form=form).text


def test_a_code_has_a_page() -> None:
    """With its title and the place in the documentation; one that is not there has the nearest."""
    text = words(asked(recorded(), "/job", code="BERTH-101"))
    assert "BERTH-101: Request and limit of a device differ" in text
    assert "docs/codes.md#berth-101-request-and-limit-of-a-device-differ" in text
    missing = asked(recorded(), "/job", code="<script>alert(1)</script>")
    assert (missing.status, "<script>alert" in missing.text) == (404, False)
    found = words(asked(recorded(), "/job", code="BERTH-114"))
    assert "shop/typo-0" in found
    assert "shop/typo-0" not in words(asked(recorded(), "/job", WEB, code="BERTH-114"))


@pytest.mark.parametrize(
    "fields",
    [
        {"pod": "web"},
        {"pod": "web/"},
        {"pod": "web/" + "x" * 300},
        {"workload": "web/Job"},
        {"workload": "web/Nothing/x"},
        {"pod": "web/a/b"},
    ],
)
def test_an_address_that_names_nothing_says_so(fields: dict[str, str]) -> None:
    """With what it wants, and no stack."""
    assert asked(recorded(), "/job", EVERYTHING, None, **fields).status == 404


class Live(Fixed):
    """A world of a cluster of which single objects are read afresh."""

    def __init__(self, at: World) -> None:
        super().__init__(replace(at, dumped=None))
        self.dump = at
        self.read: list[tuple[str, str, str]] = []
        self.kinds: set[ListedKind] = set()
        self.near = self._near  # type: ignore[assignment]

    async def _near(self, namespace: str, type_: str, name: str, kinds: Collection[ListedKind]) -> Surroundings:
        self.read.append((namespace, type_, name))
        self.kinds = set(kinds)
        if name == "gone":
            raise InputError(file="pod/gone", message="is not in namespace web; kubectl get pod -n web lists them")
        return surroundings_in_dump(self.dump, namespace, type_, name)


def test_of_a_cluster_the_pod_is_read_afresh_by_those_who_may() -> None:
    """Nothing is read for somebody who may not list pods there."""
    source = Live(recorded())
    assert "It can never be scheduled" in verdict(asked(source, "/job", pod="web/forgot-0"))
    assert source.read == [("web", "Pod", "forgot-0")]
    assert asked(source, "/job", WEB, pod="research/slice-0").status == 404
    assert len(source.read) == 1
    gone = asked(source, "/job", pod="web/gone")
    assert (gone.status, "is not in namespace web" in words(gone)) == (404, True)


def test_of_a_cluster_owners_are_shown_to_those_who_may_list_them() -> None:
    """Who may list pods and no Jobs sees the pod as its author wrote it, what is not known and why, and no page of the Job itself."""
    pod = copy.deepcopy(next(one for one in eks.objects() if one["kind"] == "Pod" and one["metadata"]["namespace"] == "web"))
    template = {"metadata": {}, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    metadata = {"name": "made", "namespace": "web", "uid": "made"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    pod["metadata"] |= {"name": "made-x", "ownerReferences": [{**job, "spec": None, **metadata, "controller": True}]}
    source = Live(world([*eks.objects(), job, pod]))
    jobs = ListedKind("batch", "jobs")

    def seen(closed: tuple[ListedKind, ...], **fields: str) -> Answered:
        return asyncio.run(answer(application(source, Somebody(closed=closed), SCREENS), "/job", fields=fields))

    assert "kind: Job" in seen((), pod="web/made-x").text
    page = seen((jobs,), pod="web/made-x")
    assert "kind: Job" not in page.text
    assert "kind: Pod" in page.text
    assert "you may not list jobs.batch in namespace web" in words(page)
    assert seen((jobs,), workload="web/Job/made").status == 200, "the dump has it under any name; of a cluster Volcano's are looked for"
    assert source.kinds == {ListedKind("batch.volcano.sh", "jobs")}
    source.read.clear()
    denied = seen((jobs, ListedKind("batch.volcano.sh", "jobs")), workload="web/Job/made")
    assert (denied.status, source.read) == (404, [])
    assert 'Ask for the role "view" there' in words(denied)


def test_of_several_templates_the_page_tells_of_the_one_that_decides() -> None:
    """A launcher without a GPU has a place, and its workers none: verdict, places and alternatives are the workers'."""
    launcher = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
    worker = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 64}}}]}}
    value = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "train"},
        "spec": {"mpiReplicaSpecs": {"Launcher": {"template": launcher}, "Worker": {"replicas": 2, "template": worker}}},
    }
    found = words(asked(recorded(), "/job", form={"manifest": json.dumps(value), "namespace": "web"}))
    assert "a node has room for it now" not in found
    assert "Placement is shown for spec.mpiReplicaSpecs.Worker.template" in " ".join(found.split())


def test_what_is_not_judged_says_why() -> None:
    """An object of a kind that the catalog does not have, with the accelerator that it holds and what to type; not a fact beside it."""
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    text = json.dumps({"apiVersion": "x.example/v1", "kind": "Trainer", "metadata": {"name": "a"}, "spec": {"template": template}})
    found = words(asked(recorded(), "/job", form={"manifest": text, "namespace": "web"}))
    assert "Trainer a: not checked: it names nvidia.com/gpu" in found
    assert "--catalog FILE" in found


def test_a_pod_with_claims_is_not_told_that_it_has_room() -> None:
    """Claims are not judged, and it is they that ask for its devices."""
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}],
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "one", "namespace": "web"},
        "spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
    }  # fmt: skip
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "web"}, "spec": spec}
    text = f"{json.dumps(claim)}\n---\n{json.dumps(pod)}"
    found = words(asked(recorded(), "/job", form={"manifest": text}))
    assert "it is unknown whether the cluster can run it" in found
    assert "has room for it now" not in found


def test_a_pod_without_an_owner_shows_none() -> None:
    """Reports count it under its namespace, which owns no pod."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    metadata = {"name": "bare", "namespace": "web"}
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    found = words(asked(world([*eks.objects(), bare]), "/job", q="bare"))
    assert "Namespace/web" not in found
    assert " none " in found
