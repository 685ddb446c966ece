"""Objects as somebody would apply them again."""

from __future__ import annotations

from analysis.why.fixes import cleaned, command


def test_a_job_loses_what_its_controller_gives_each_job_anew() -> None:
    """Status, selector, labels of its uid; what its author wrote stays."""
    labels = {"controller-uid": "u", "job-name": "j", "app": "x"}
    spec = {"selector": {"matchLabels": {"controller-uid": "u"}}, "template": {"metadata": {"labels": dict(labels)}}}
    metadata = {
        "name": "j",
        "uid": "u",
        "resourceVersion": "1",
        "labels": dict(labels),
        "annotations": {"note": "a", "deployment.kubernetes.io/revision": "1"},
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": {"active": 1}}
    assert cleaned(job) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": {"app": "x"}, "annotations": {"note": "a"}},
        "spec": {"template": {"metadata": {"labels": {"app": "x"}}}},
    }
    assert "selector" in cleaned({**job, "spec": {**spec, "manualSelector": True}})["spec"]
    assert "selector" in job["spec"]


def test_a_pod_loses_its_node_and_the_token_of_its_account() -> None:
    """Other volumes stay."""
    mounts = [{"name": "kube-api-access-x1"}, {"name": "data"}]
    spec = {"nodeName": "n", "volumes": list(mounts), "containers": [{"name": "c", "volumeMounts": list(mounts)}, {"name": "d"}]}
    found = cleaned({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec})["spec"]
    assert found == {"volumes": [{"name": "data"}], "containers": [{"name": "c", "volumeMounts": [{"name": "data"}]}, {"name": "d"}]}


def test_what_the_api_server_writes_for_the_silent_is_left_out() -> None:
    """Of a Job as `kubectl get -o yaml` prints it the lines that say nothing; what an author writes otherwise stays."""
    container = {"name": "c", "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}}
    other = {"name": "d", "terminationMessagePath": "/tmp/end", "resources": {"limits": {"cpu": 1}}}
    pod = {"containers": [container, other], "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {}}
    template = {"metadata": {"creationTimestamp": None, "labels": {"job-name": "j"}}, "spec": {**pod, "restartPolicy": "Never"}}
    spec = {"backoffLimit": 2, "completionMode": "NonIndexed", "manualSelector": False, "suspend": False, "template": template}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j", "labels": {"job-name": "j"}}, "spec": spec}
    found = cleaned(job)
    assert list(found) == ["apiVersion", "kind", "metadata", "spec"]
    assert found["metadata"] == {"name": "j"}
    containers = [{"name": "c"}, other]
    assert found["spec"] == {"backoffLimit": 2, "template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}
    mine = {"dnsPolicy": "None", "schedulerName": "kai-scheduler", "securityContext": {"runAsUser": 1}, "containers": []}
    assert cleaned({"kind": "Job", "metadata": {}, "spec": {"suspend": True, "template": {"spec": mine}}})["spec"] == {
        "suspend": True,
        "template": {"spec": mine},
    }


def test_what_to_type() -> None:
    """A template that cannot be changed is made anew."""
    assert command("Job", "", "f.yaml") == "kubectl create -f f.yaml"
    assert command("Job", "train", "f.yaml") == "kubectl replace --force -f f.yaml"
    assert command("Deployment", "llm", "f.yaml") == "kubectl apply -f f.yaml"
