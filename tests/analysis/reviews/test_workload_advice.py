"""What is said of a workload: to its author, in its own paths, whatever it looks like."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.reviews import workload_advice
from analysis.reviews.review import ObjectRequest, ReviewError
from analysis.reviews.workload_advice import MOST_TEMPLATES, answer_advice, from_document, parse
from catalog import Workload
from kube.review import WARNING_LENGTH
from kube.tree import set_at
from policies.state.snapshot import Snapshot
from policies.workloads.templates import steps
from tests.support import snapshots
from tests.support.cases import golden
from tests.support.cases.kind_manifests import kind_cases
from tests.support.cases.reviews import RECORDED, job_review, ray_review, workload_document, workload_review
from tests.support.generators.strategies import examples

CATALOG = golden.catalog_with()
TEMPLATED = [(w, path) for w in CATALOG.workloads for path in w.templates]
EQUAL = {"require": {"requestsEqualLimits": ["accelerators"]}}
GPU_NAME = "karpenter.k8s.aws/instance-gpu-name"
WRONG: tuple[Any, ...] = (None, 1, True, 1.5, "x", [], {}, [1], {"a": 1}, [None])


def world(*specs: dict[str, Any], **options: Any) -> Snapshot:
    """A snapshot of policies in Enforce, unless they say otherwise."""
    objects = [
        {"kind": "ClusterGPUPolicy", "metadata": {"name": f"p{i}"}, "spec": {"mode": "Enforce", **spec}} for i, spec in enumerate(specs)
    ]
    return snapshots.build(golden.policies_of(objects, CATALOG), CATALOG, **{"platforms": ["karpenter-aws"], **options})


WORLD = world(EQUAL)


def template(request: str = "1", limit: str = "1", **spec: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": limit}, "requests": {"nvidia.com/gpu": request}}
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "resources": resources}], **spec}}


def placed(path: str, one: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A workload with ``one`` where ``path`` of the catalog leads, and the path that was taken."""
    way = tuple(0 if step == "[*]" else "Worker" if step == "*" else step for step in steps(path))
    return set_at({}, way, one), path.replace("[*]", "[0]").replace("*", "Worker")


def advise(review: ObjectRequest, snapshot_: Snapshot) -> tuple[str, ...]:
    """The sentences; each begins with its code."""
    advice = workload_advice.advise(review, snapshot_)
    assert all(one.text.startswith(one.code) for one in advice)
    return tuple(one.text for one in advice)


def replicas(templates: dict[str, Any]) -> dict[str, Any]:
    """The spec of a PyTorchJob by role."""
    return {"spec": {"pytorchReplicaSpecs": {role: {"template": one} for role, one in templates.items()}}}


def sliced(size: str) -> dict[str, Any]:
    """A template whose author asks for a MIG slice."""
    one = template()
    one["metadata"]["annotations"] = {"berth.dev/mig-slice": size}
    return one


def mismatch(path: str, container: str = "main") -> str:
    """The sentence, with as much of the rest as a warning holds."""
    message = (
        f'BERTH-101 (its pods will be denied): container "{container}" requests 1 nvidia.com/gpu but its limit is 2; '
        f'set {path}.spec.containers[0].resources.requests["nvidia.com/gpu"] to 2'
    )
    asked_by = " (required by ClusterGPUPolicy/p0)"
    ways = (f"{message}. Devices can't be overcommitted.{asked_by}", f"{message}.{asked_by}", message)
    return next(way for way in ways if len(way) <= WARNING_LENGTH)


# --- what is read ------------------------------------------------------------------------------------------------------


def test_a_recorded_deployment_is_read() -> None:
    """What kube-apiserver 1.36 sent for a Deployment comes out typed, the object as it came."""
    got = parse(json.dumps(RECORDED).encode())
    assert (got.uid, got.operation, got.namespace, got.user) == ("f656873a-8eb1-4145-8a54-c881d14ed51f", "CREATE", "ml-team", "admin")
    assert (got.api_version, got.kind, got.name, got.dry_run) == ("apps/v1", "Deployment", "vllm-server", False)
    assert got.value == RECORDED["request"]["object"]


def test_an_update_and_a_dry_run_are_read() -> None:
    """Both are advised on; a dry run is known as one."""
    got = job_review(template(), operation="UPDATE", dryRun=True)
    assert (got.operation, got.dry_run) == ("UPDATE", True)


@pytest.mark.parametrize(
    ("metadata", "name", "read"),
    [
        ({"name": "written"}, "asked", "asked"),
        ({"name": "written"}, "", "written"),
        ({"generateName": "some-"}, None, "some-"),
        ({"name": 7}, 7, ""),
        ("x", "", ""),
        (None, "", ""),
    ],
    ids=str,
)
def test_a_name_is_the_requests_or_the_objects(metadata: object, name: object, read: str) -> None:
    """A workload with generateName has no name yet."""
    assert workload_review("batch/v1", "Job", {"metadata": metadata}, name=name).name == read


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param({"uid": 7}, "request.uid is 7; expected a string", id="uid"),
        pytest.param({"namespace": ""}, 'request.namespace is ""', id="namespace"),
        pytest.param({"operation": "DELETE"}, 'request.operation is "DELETE"; Berth evaluates CREATE and UPDATE', id="delete"),
        pytest.param({"operation": "CONNECT"}, "Berth evaluates CREATE and UPDATE", id="connect"),
        pytest.param({"object": None}, "request.object is missing; expected a Deployment", id="no-object"),
        pytest.param({"object": [[]]}, r"request.object is \[\[\]\]; expected a Deployment", id="object-list"),
        pytest.param({"kind": None}, "request.kind is missing; expected a group, version and kind", id="no-kind"),
        pytest.param({"kind": {"group": "apps", "version": "v1", "kind": ""}}, "expected a group, version and kind", id="empty-kind"),
        pytest.param({"kind": {"group": 1, "version": "v1", "kind": "x"}}, "expected a group, version and kind", id="group-number"),
        pytest.param({"resource": "jobs"}, 'request.resource is "jobs"', id="resource-text"),
        pytest.param({"resource": {"group": "", "resource": "pods"}}, "send pods to /mutate and /validate", id="pods"),
        pytest.param({"subResource": "scale"}, "send only workloads here", id="subresource"),
    ],
)
def test_what_is_no_review_of_a_workload_is_a_400(request_: dict[str, Any], message: str) -> None:
    """Each field that is wrong or not ours is named with its value."""
    with pytest.raises(ReviewError, match=message) as error:
        from_document({**RECORDED, "request": {**RECORDED["request"], **request_}})
    assert error.value.status == 400


@pytest.mark.parametrize("body", [b"", b"[]", b'{"kind": "AdmissionReview"}', b"[" * 5000, b'{"a": NaN}'], ids=repr)
def test_a_body_that_is_no_review_is_a_400(body: bytes) -> None:
    """As at the paths of pods."""
    with pytest.raises(ReviewError) as error:
        parse(body)
    assert error.value.status == 400


def test_an_object_too_deep_to_be_shown_is_a_400() -> None:
    """What can be read and not be written again is named by its kind."""
    deep = "[" * 500 + "]" * 500
    body = json.dumps({**RECORDED, "request": {**RECORDED["request"], "object": "DEEP"}}).replace('"DEEP"', deep).encode()
    with pytest.raises(ReviewError, match=r"request.object is a list; expected a Deployment"):
        parse(body)


# --- what is said ------------------------------------------------------------------------------------------------------


def test_a_recorded_deployment_that_fits_is_told_nothing() -> None:
    """Its request is its limit."""
    assert advise(from_document(RECORDED), WORLD) == ()


def test_a_recorded_deployment_with_a_mismatch_is_told_where() -> None:
    """In the Deployment's own path, which its author edits."""
    wrong = copy.deepcopy(RECORDED)
    wrong["request"]["object"]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "2"
    assert advise(from_document(wrong), WORLD) == (mismatch("spec.template", "vllm"),)


@pytest.mark.parametrize(("workload", "path"), TEMPLATED, ids=[f"{w.name}-{path}" for w, path in TEMPLATED])
def test_every_template_of_the_catalog_is_advised_on(workload: Workload, path: str) -> None:
    """Each kind, at each place: a mismatch is told with the path that leads to it, a template that fits is told nothing."""
    kind = workload.kind
    for api_version in workload.api_version:
        wrong, at = placed(path, template(limit="2"))
        assert advise(workload_review(api_version, kind, wrong), WORLD) == (mismatch(at),)
        assert advise(workload_review(api_version, kind, placed(path, template())[0]), WORLD) == ()


@pytest.mark.parametrize("number", ["kserve", "argo", "nvidia", "batch", "trainer"])
def test_kinds_without_templates_are_advised_on(number: str) -> None:
    """Of a manifest as its author writes it, a denial with the manifest's own path."""
    expected = {
        "kserve": 'set spec.predictor.containers[0].resources.requests["nvidia.com/gpu"] to 2',
        "argo": 'set spec.containers[0].resources.requests["nvidia.com/gpu"] in spec.templates[0].podSpecPatch to 2',
        "trainer": 'set spec.trainer.resourcesPerNode.limits["nvidia.com/gpu"] to 4',
    }
    texts: list[str] = []
    for value in (case["manifest"] for path, _, case in kind_cases() if path.stem == number):
        texts += advise(workload_review(value["apiVersion"], value["kind"], value), WORLD)
    denials = [one for one in texts if "its pods will be denied" in one]
    assert len(denials) == (number in expected)
    assert all(expected[number] in one for one in denials)


def test_no_wrong_type_in_kinds_without_templates_is_an_error() -> None:
    """Whatever an operator's schema lets pass: the workload is allowed, with at most a sentence."""
    random = Random(3)
    for value in (case["manifest"] for _, _, case in kind_cases()):
        for path in [("spec",), *(("spec", key) for key in value.get("spec", {}))]:
            one = set_at(value, path, random.choice(WRONG))
            assert isinstance(advise(workload_review(value["apiVersion"], value["kind"], one), WORLD), tuple)


def test_an_amount_that_is_not_filled_in_is_told_without_a_policy() -> None:
    """The API server takes no pod with it."""
    (texts,) = advise(job_review(template("$GPUS", "$GPUS")), world({"default": {"acceleratorTaints": "Tolerate"}}))
    assert texts.startswith('BERTH-102 (its pods will be denied): container "main": nvidia.com/gpu "$GPUS" is not a whole number')


def test_a_patch_that_cannot_be_read_is_told() -> None:
    """What else is said of the pods is judged all the same."""
    one = {"name": "a", "container": {"resources": {"limits": {"nvidia.com/gpu": "500m"}}}, "podSpecPatch": "{{inputs.parameters.p}}"}
    texts = advise(workload_review("argoproj.io/v1alpha1", "Workflow", {"spec": {"templates": [one]}}), WORLD)
    assert texts[0].startswith("BERTH-002: spec.templates[0].podSpecPatch: must be a patch of the pod's spec; found the text")
    assert texts[1].startswith("BERTH-102 (its pods will be denied): ")
    assert 'set spec.templates[0].container.resources.limits["nvidia.com/gpu"] to a whole number' in texts[1]


def test_a_denied_worker_group_is_named() -> None:
    """Where a workload has several templates, a denial says which is meant: by the path to edit, or before the fact."""
    texts = advise(ray_review(template(), template(limit="2"), headGroupSpec={"template": template()}), WORLD)
    assert texts == (mismatch("spec.workerGroupSpecs[1].template"),)
    (counted,) = advise(ray_review(template(), template("9", "9")), world({"require": {"gpusPerPod": {"max": 8}}}))
    assert counted.startswith("BERTH-111 (its pods from spec.workerGroupSpecs[1].template will be denied): the pod requests 9 GPUs")


@pytest.mark.parametrize(
    ("one", "code", "fix"),
    [
        pytest.param(template("500m", "500m"), "BERTH-102", "set {}.containers[0].resources.limits", id="amount"),
        pytest.param(template(nodeSelector={GPU_NAME: "t4"}), "BERTH-121", f"{{}}.nodeSelector {GPU_NAME}=t4 violates", id="gpu"),
        pytest.param(template(nodeSelector={GPU_NAME: "x9"}), "BERTH-125", f"{{}}.nodeSelector {GPU_NAME}=x9 is unknown", id="value"),
    ],
)
def test_a_fix_of_one_of_several_templates_is_to_be_pasted(one: dict[str, Any], code: str, fix: str) -> None:
    """With the path in the PyTorchJob, once, not the pod's; an unknown value is not remarked on beside its denial."""
    job_ = workload_review("kubeflow.org/v1", "PyTorchJob", replicas({"Master": template(), "Worker": one}))
    (texts,) = advise(job_, world(EQUAL, {"require": {"families": {"in": ["hopper", "ampere"]}}}))
    assert texts.startswith(f"{code} (its pods will be denied): ")
    assert fix.format("spec.pytorchReplicaSpecs.Worker.template.spec") in texts
    assert texts.count("pytorchReplicaSpecs") == 1
    assert len(texts) <= WARNING_LENGTH


def test_a_denial_says_who_asks_where_there_is_room() -> None:
    """As the denial of a pod does, and what else it says: whole or not at all."""
    few = {"require": {"gpusPerPod": {"max": 8}}}
    (texts,) = advise(job_review(template("9", "9")), world(few))
    assert texts.endswith("; request at most 8, or split the work over more pods. (required by ClusterGPUPolicy/p0)")
    (crowded,) = advise(job_review(template("9", "9")), world(*[few] * 9))
    assert crowded.endswith("; request at most 8, or split the work over more pods")
    (detailed,) = advise(job_review(template(limit="2")), WORLD)
    assert detailed.endswith(" to 2. Devices can't be overcommitted. (required by ClusterGPUPolicy/p0)")
    annotated = template()
    annotated["metadata"]["annotations"] = {"berth.dev/node-template": "none"}
    (nobodys,) = advise(job_review(annotated), WORLD)
    assert nobodys.endswith("; remove the annotation. No template is allowed in this namespace.")


def test_a_warning_policy_says_what_it_would_deny() -> None:
    """As for a pod, with the template where there are several; Audit says nothing to the author."""
    few, audited = {"require": {"gpusPerPod": {"max": 1}}, "mode": "Warn"}, {"require": {"gpusPerPod": {"max": 2}}, "mode": "Audit"}
    rest = "would be denied if ClusterGPUPolicy/p0 were in Enforce): the pod requests 4 GPUs, more than the 1 allowed here; request"
    (alone,) = advise(job_review(template("4", "4")), world(few, audited))
    assert alone.startswith(f"BERTH-111 ({rest}")
    (named,) = advise(ray_review(template("4", "4"), template()), world(few, audited))
    assert named.startswith(f"BERTH-111 (pods from spec.workerGroupSpecs[0].template {rest}")


def test_remarks_are_said_once_for_all_templates() -> None:
    """Which template is meant does not matter to what is no denial."""
    (texts,) = advise(ray_review(sliced("10gb"), sliced("10gb"), template("0", "0")), WORLD)
    assert texts.startswith("BERTH-210: MIG slice 10gb skipped: ")


def test_a_default_that_was_left_out_is_not_told() -> None:
    """No author can mend it; a slice that the annotation asks for is the author's own wish."""
    slices = world({"default": {"mig": {"slice": "10gb"}}})
    assert advise(job_review(template()), slices) == ()
    assert advise(job_review(sliced("10gb")), slices) != ()


def test_a_value_that_is_denied_is_not_remarked_on() -> None:
    """That no node has a slice of a size which does not exist is no news."""
    assert [texts[:9] for texts in advise(job_review(sliced("11gb")), WORLD)] == ["BERTH-151"]


@pytest.mark.parametrize(("version", "kind", "gpus"), [("apps/v1", "Deployment", "1"), ("batch/v1", "Job", "8")])
def test_a_correct_workload_under_the_shipped_library_is_told_what_is_chosen(version: str, kind: str, gpus: str) -> None:
    """Its pods get what the library writes, on karpenter-aws, in silence but for the models of their GPUs, with a path of the workload."""
    library = snapshots.build(golden.policies_of("library", CATALOG), CATALOG, platforms=["karpenter-aws"])
    (texts,) = advise(workload_review(version, kind, {"metadata": {"name": "x"}, "spec": {"template": template(gpus, gpus)}}), library)
    assert texts.startswith("BERTH-221: ")
    assert " set spec.template.spec.nodeSelector karpenter.k8s.aws/instance-gpu-name: " in texts


def test_a_remark_has_the_workloads_path() -> None:
    """A typo in a nodeSelector is to be found in the template."""
    (texts,) = advise(job_review(template(nodeSelector={"karpenter.k8s.aws/instance-gpu-name": "h10"})), WORLD)
    message = 'spec.template.spec.nodeSelector karpenter.k8s.aws/instance-gpu-name: "h10" is not a known value'
    assert texts == f'BERTH-201: {message}; did you mean "h100"?'


def test_what_repair_mends_is_not_denied() -> None:
    """Both phases are foretold: /validate sees the pod as /mutate edited it."""
    assert advise(job_review(template(limit="2")), world(EQUAL, {"default": {"repair": ["accelerators"]}})) == ()


def test_the_pods_user_is_the_controllers() -> None:
    """A policy that excludes who applies the workload still judges its pods, one that excludes the controller does not."""
    controller = "system:serviceaccount:kube-system:job-controller"
    assert advise(job_review(template(limit="2")), world({**EQUAL, "match": {"exclude": {"users": ["admin"]}}})) != ()
    assert advise(job_review(template(limit="2")), world({**EQUAL, "match": {"exclude": {"users": [controller]}}})) == ()


def test_a_quoted_path_stays_as_the_author_wrote_it() -> None:
    """Only paths of the pod are led by the template's, not what a value holds."""
    written = {"berth.dev/expected-duration": "spec.containers of metadata.labels"}
    one = template()
    one["metadata"]["annotations"] = written
    (texts,) = advise(job_review(one), WORLD)
    assert 'spec.template.metadata.annotations["berth.dev/expected-duration"] is "spec.containers of metadata.labels"' in texts


@pytest.mark.parametrize(("length", "way"), [(3, "placed"), (30, "named"), (60, "short")])
def test_a_long_path_gives_way(length: int, way: str) -> None:
    """A warning that would be cut names the template once and keeps the pod's own paths, so that the fix stays whole."""
    role = "W" * length
    specs = replicas({role: template(terminationGracePeriodSeconds=3600), "M": template()})
    (texts,) = advise(workload_review("kubeflow.org/v1", "PyTorchJob", specs), world({"require": {"gracePeriod": {"max": "10m"}}}))
    at, field = f"spec.pytorchReplicaSpecs.{role}.template", "spec.terminationGracePeriodSeconds"
    opening = {"placed": "its pods will be denied", "named": f"its pods from {at} will be denied", "short": at}[way]
    field = f"{at}.{field}" if way == "placed" else field
    assert texts.startswith(f"BERTH-141 ({opening}): {field} is 3600, above the maximum of 600 s here; set {field} to at most 600")
    assert len(texts) <= WARNING_LENGTH


# --- what is passed over -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "review_",
    [
        pytest.param(workload_review("example.com/v1", "Job", {"spec": {"template": template(limit="2")}}), id="unknown-group"),
        pytest.param(workload_review("v1", "ConfigMap", {"data": {}}), id="no-workload"),
        pytest.param(workload_review("trainer.kubeflow.org/v1alpha1", "TrainJob", {"spec": {"trainer": {}}}), id="no-templates"),
        pytest.param(ray_review(), id="no-groups"),
        pytest.param(ray_review(None, headGroupSpec=None), id="null-groups"),
        pytest.param(job_review({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}}), id="no-accelerator"),
        pytest.param(job_review(template("0", "0")), id="zero"),
    ],
)
def test_of_what_berth_does_not_judge_nothing_is_said(review_: ObjectRequest) -> None:
    """Allowed, without a warning."""
    assert advise(review_, world(EQUAL, {"require": {"requestsEqualLimits": ["cpuAndMemory"]}})) == ()
    assert answer_advice(review_, ())["response"] == {"uid": RECORDED["request"]["uid"], "allowed": True}


@pytest.mark.parametrize(
    ("review_", "message"),
    [
        pytest.param(
            job_review(None), "spec.template: must be a pod template, a map with metadata and spec; found nothing (null)", id="null"
        ),
        pytest.param(job_review({"spec": []}), "spec.template.spec: must be a map; found a list", id="spec"),
        pytest.param(
            ray_review("x"),
            'spec.workerGroupSpecs[0].template: must be a pod template, a map with metadata and spec; found the text "x"',
            id="text",
        ),
        pytest.param(
            workload_review("trainer.kubeflow.org/v1alpha1", "TrainJob", {"spec": 7}),
            "spec: must be a map; found the number 7",
            id="another-kind",
        ),
    ],
)
def test_a_template_that_cannot_be_read_is_told(review_: ObjectRequest, message: str) -> None:
    """Once, with its path; the workload is allowed."""
    assert advise(review_, WORLD) == (f"BERTH-002: {message}; its pods are not checked in advance",)


def test_a_template_that_cannot_be_read_hides_no_other() -> None:
    """The others are judged."""
    assert [texts[:9] for texts in advise(ray_review("x", template(limit="2")), WORLD)] == ["BERTH-002", "BERTH-101"]


def test_a_workload_of_many_templates_is_judged_in_part() -> None:
    """It must not hold up the reviews of pods; what is left out is said."""
    texts = advise(ray_review(*[template(limit="2")] * (MOST_TEMPLATES + 1)), WORLD)
    assert len(texts) == MOST_TEMPLATES + 1
    assert texts[-1] == f"BERTH-002: only its first {MOST_TEMPLATES} pod templates are checked in advance; run berth try for all"
    assert len(advise(ray_review(*[template(limit="2")] * MOST_TEMPLATES), WORLD)) == MOST_TEMPLATES


# --- the answer --------------------------------------------------------------------------------------------------------


def test_the_answer_is_always_allowed_and_never_patches() -> None:
    """Echoing uid, kind and version; the denials are warnings."""
    review_ = job_review(template(limit="2"))
    whole = answer_advice(review_, workload_advice.advise(review_, WORLD))
    assert (whole["apiVersion"], whole["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert whole["response"] == {"uid": RECORDED["request"]["uid"], "allowed": True, "warnings": [mismatch("spec.template")]}


def test_warnings_keep_the_limits_of_the_api_server() -> None:
    """At most 4,096 characters, and what did not fit is counted."""
    mismatched = template(limit="2")["spec"]["containers"] * 2
    review_ = ray_review(*[template(containers=mismatched)] * MOST_TEMPLATES)
    warnings = answer_advice(review_, workload_advice.advise(review_, WORLD))["response"]["warnings"]
    assert sum(map(len, warnings)) <= 4096
    assert warnings[-1].startswith("BERTH-001: ")
    assert all(len(text) <= WARNING_LENGTH for text in warnings)


# --- whatever it looks like --------------------------------------------------------------------------------------------


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(inner, (*path, key))


def test_a_wrong_type_anywhere_is_allowed() -> None:
    """At every path of a real Deployment, with every kind of value."""
    deployment = RECORDED["request"]["object"]
    del deployment["metadata"]["managedFields"]
    for path in paths(deployment):
        for wrong in WRONG:
            review_ = workload_review("apps/v1", "Deployment", set_at(deployment, path, copy.deepcopy(wrong)))
            assert answer_advice(review_, workload_advice.advise(review_, WORLD))["response"]["allowed"] is True


@pytest.mark.parametrize(
    "path", [("spec", "x"), ("spec", "tolerations", 0, "x"), ("spec", "affinity", "x"), ("metadata", "labels")], ids=str
)
def test_a_template_nested_deep_is_allowed(path: tuple[Any, ...]) -> None:
    """As deep as the parser reads."""
    one = set_at(template(limit="2", tolerations=[{"operator": "Exists"}]), path, "DEEP")
    deep = '{"a": [' * 450 + "null" + "]}" * 450
    body = json.dumps(workload_document("batch/v1", "Job", {"spec": {"template": one}})).replace('"DEEP"', deep).encode()
    review_ = parse(body)
    advice = workload_advice.advise(review_, world(EQUAL, {"default": {"acceleratorTaints": "Tolerate"}}))
    assert answer_advice(review_, advice)["response"]["allowed"] is True


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["spec", "metadata", "template", "containers", "labels", "x"]), inner)
    ),
    max_leaves=20,
)
KINDS = [(version, w.kind or w.name, w) for w in CATALOG.workloads if w.name != "Pod" for version in w.api_version]


@given(st.sampled_from(KINDS), JSON, st.none() | st.integers(0, 2))
@examples(small=40, full=20_000)
def test_any_object_is_allowed_or_a_400(kind: tuple[str, str, Workload], value: Any, place: int | None) -> None:
    """Any JSON as the object, or in place of its template: a ReviewError, or allowed."""
    version, name, workload = kind
    if workload.templates and place is not None:
        value, _ = placed(workload.templates[place % len(workload.templates)], value)
    body = json.dumps(workload_document(version, name, value)).encode()
    if isinstance(value, dict):
        review_ = parse(body)
        assert answer_advice(review_, workload_advice.advise(review_, WORLD))["response"]["allowed"] is True
    else:
        with pytest.raises(ReviewError):
            parse(body)


def test_keys_of_the_workload_itself() -> None:
    """Kueue reads the queue of a workload's own label: a misspelt one is told, unless its pods ask for no GPU."""
    metadata = {"name": "j", "labels": {"kueue.x-k8s.io/queuename": "gpu"}}
    one = workload_review("batch/v1", "Job", {"metadata": metadata, "spec": {"template": template()}})
    (sentence,) = advise(one, WORLD)
    assert sentence.startswith('BERTH-246: metadata.labels["kueue.x-k8s.io/queuename"] ')
    plain = workload_review("batch/v1", "Job", {"metadata": metadata, "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}})
    assert advise(plain, WORLD) == ()
    odd = workload_review("batch/v1", "Job", {"metadata": {"labels": ["x"], "annotations": 1}, "spec": {"template": template()}})
    assert advise(odd, WORLD) == ()


@pytest.mark.parametrize(("queue", "told"), [("a", False), ("b", True), (None, True)])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_what_kueue_gates_is_told_of_its_queue_alone(kind: str, queue: str | None, *, told: bool) -> None:
    """Kueue's gate holds its pods, so one with the right label is told nothing."""
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    world_ = world({"require": {"queue": {"kueue": ["a"]}}}, queues=("kueue",))
    value = {"metadata": {"name": "w", "labels": labels}, "spec": {"template": template()}}
    assert any("BERTH-144" in one for one in advise(workload_review("apps/v1", kind, value), world_)) is told
