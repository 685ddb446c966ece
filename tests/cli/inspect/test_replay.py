"""`berth replay` as it is typed: recordings in and out, what cannot be compared, and what cannot be read."""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.reviews import review
from cli.main import main
from cli.replaying import total as total_module
from documents.recordings import pieces
from policies.engine import evaluate
from policies.state.snapshot import Snapshot
from sources.sources import Sources, load_sources
from tests.cli.replaying.events import Raw, cloud_entry, decided, event, lines, of_job, pod

Run = Callable[..., tuple[int, str, str]]
PLATFORM = ("--platforms", "karpenter-aws")


def policy(name: str, mode: str, **spec: Any) -> Raw:
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"mode": mode, **spec}}


GRACE = policy("grace", "Enforce", default={"gracePeriod": "10m"})
HEADS = "PODS  NEWLY DENIED  NEWLY ADMITTED  DENIED DIFFERENTLY  EDITED DIFFERENTLY  AUDITED DIFFERENTLY  GPUS  USD/H"
FEW = {"require": {"gpusPerPod": {"max": 2}}}
OLD = (GRACE, policy("few", "Audit", **FEW))
NEW = (GRACE, policy("few", "Enforce", **FEW))


class Files:
    """Policies and recordings in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def policies(self, name: str, *found: Raw) -> str:
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump_all(found))
        return str(file)

    def write(self, name: str, content: str | bytes) -> str:
        file = self.folder / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(file)

    def snapshot(self, *found: Raw) -> Snapshot:
        return load_sources(Sources(policies=(self.policies("snapshot", *found),), platforms=("karpenter-aws",))).snapshot


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Types `berth replay ...`: (exit code, standard output, standard error)."""

    def typed(*words: str) -> tuple[int, str, str]:
        try:
            code = main(["replay", *PLATFORM, *words])
        except SystemExit as stopped:  # argparse's own way
            code = int(str(stopped.code))
        out, err = capsys.readouterr()
        return code, out, err

    return typed


def recorded(files: Files, number: int = 3) -> list[Raw]:
    """Under the old policies: a Job of eight GPUs a pod, and a pod of one that nobody owns."""
    old = files.snapshot(*OLD)
    made = [of_job(f"train-{each}", "train", gpus="8") for each in range(number)]
    return [event(one, each, annotations=decided(one, old)) for each, one in enumerate([*made, pod("alone")])]


def test_the_same_policies_decide_nothing_otherwise(run: Run, files: Files) -> None:
    """Exit code 0."""
    log = files.write("audit.log", lines(*recorded(files)))
    code, out, err = run(log, "--policies", files.policies("old", *OLD))
    assert (code, err) == (0, "")
    assert out == "Of 4 pods with accelerators, none has a different decision now: 0 admitted unchanged, 4 edited, 0 denied.\n"


def test_events_as_an_audit_webhook_gets_them_are_read(run: Run, files: Files) -> None:
    """Lists, whose items have neither kind nor version; events of the core group are none of them."""
    bare = [{key: value for key, value in one.items() if key not in ("kind", "apiVersion")} for one in recorded(files)]
    posted = [{"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": [one]} for one in bare]
    core = {"kind": "Event", "apiVersion": "v1", "reason": "pods"}
    log = files.write("audit.log", lines(*posted, core))
    code, out, err = run(log, "--policies", files.policies("old", *OLD))
    assert (code, out[:9]) == (0, "Of 4 pods")
    assert err.count("skipped") == err.count("objects that are not recordings; to check manifests, use berth try FILE (1") == 1


def test_cloud_audit_logs_of_gke_say_the_same_as_the_api_servers_own(run: Run, files: Files) -> None:
    """As a sink writes them, a line each, and as gcloud prints them, an array on many lines, or YAML documents."""
    events, words = recorded(files), ("--policies", files.policies("new", *NEW), "-o", "json")
    wanted = run(files.write("audit.log", lines(*events)), *words)
    entries = [cloud_entry(one) for one in events]
    forms = {"sink.json": lines(*entries), "gcloud.json": json.dumps(entries, indent=2), "gcloud.yaml": yaml.safe_dump_all(entries)}
    for name, text in forms.items():
        code, out, _ = run(files.write(name, text), *words)
        assert (code, _counts(out)) == (1, _counts(wanted[1])), name


def _counts(out: str) -> Any:
    found = json.loads(out)
    for difference in found["differences"]:
        del difference["example"]["file"], difference["example"]["line"]
    return {key: value for key, value in found.items() if key != "files"}


def test_what_cloud_audit_logs_lack_is_told(run: Run, files: Files) -> None:
    """Without the webhooks' notes nobody knows what was decided then; without a pod there is nothing to judge."""
    bare = [cloud_entry(event(pod(), number)) for number in range(3)]
    without = [cloud_entry(event(pod(), 10)), cloud_entry(event(pod(), 11, annotations={"audit.k8s.io/truncated": "true"}))]
    for entry in without:
        del entry["protoPayload"]["request"]
    _, out, err = run(files.write("sink.json", lines(*bare, *without)), "--policies", files.policies("new", *NEW))
    assert "pods without a recorded decision are only counted (3)" in err
    assert "creations at level Metadata, which does not include the pod" in err
    assert "creations whose event was truncated" in err
    assert out


def test_what_is_decided_otherwise_is_counted_by_policy_namespace_and_workload(run: Run, files: Files) -> None:
    """Exit code 1; with devices and dollars, and one pod of each group with the reason."""
    log = files.write("audit.log", lines(*recorded(files)))
    code, out, err = run(log, "--policies", files.policies("new", *NEW), "--diff")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "Of 4 pods with accelerators, 3 have a different decision now (24 GPUs, 10.08 USD/h at least): 3 newly denied.",
        "",
        f"POLICY                  {HEADS}",
        "ClusterGPUPolicy/few    4     3             0               0                   0                   0                    "
        "24    10.08",
        "ClusterGPUPolicy/grace  4     0             0               0                   0                   0                    0",
        "",
        f"NAMESPACE  {HEADS}",
        "team       4     3             0               0                   0                   0                    24    10.08",
        "",
        "NAMESPACE  WORKLOAD   PODS  GPUS  USD/H  DIFFERENCE    BEFORE  NOW                 POLICIES",
        "team       Job/train  3     24    10.08  newly denied  edited  denied (BERTH-111)  ClusterGPUPolicy/few",
        "",
        f"team Job/train, pod train-0 ({log}, line 1) is now denied:",
        "  BERTH-111: the pod requests 8 GPUs, more than the 2 allowed here; request at most 2, or split the work over more pods. "
        "(required by ClusterGPUPolicy/few)",
    ]


def test_the_diff_is_between_the_pods_as_they_were_admitted(run: Run, files: Files) -> None:
    """Other edits, with what both have in common left out."""
    log = files.write("audit.log", lines(*recorded(files)))
    longer = policy("grace", "Enforce", default={"gracePeriod": "20m"})
    code, out, _ = run(log, "--policies", files.policies("new", longer, OLD[1]), "--diff")
    assert code == 1
    assert f"--- team Job/train, pod train-0 ({log}, line 1), before" in out
    changed = [line for line in out.splitlines() if line[:2] in ("- ", "+ ")]
    assert changed[:2] == ["-  terminationGracePeriodSeconds: 600", "+  terminationGracePeriodSeconds: 1200"]
    assert "edited (terminationGracePeriodSeconds)" in out


def test_what_an_audited_policy_would_do_is_compared(run: Run, files: Files) -> None:
    """The audit annotations hold it."""
    log = files.write("audit.log", lines(*recorded(files)))
    code, out, _ = run(log, "--policies", files.policies("new", GRACE), "-o", "json")
    (found,) = json.loads(out)["differences"]
    assert code == 1
    assert (found["turn"], found["policies"], found["pods"]) == ("other-would", ["ClusterGPUPolicy/few"], 3)
    assert (found["then"]["decision"], found["now"]["decision"]) == ("would deny", "nothing")


def test_without_a_record_of_then_the_old_policies_are_then(run: Run, files: Files) -> None:
    """Reviews without answers, as `berth try` reads them; without old policies they are counted, and that is told."""
    asked: Raw = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "namespace": "team",
            "operation": "CREATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": pod(gpus="4"),
        },
    }
    new = files.policies("new", *NEW)
    for name, text in (("r.json", json.dumps(asked, indent=1)), ("r.jsonl", lines(asked)), ("r.yaml", yaml.safe_dump(asked))):
        file = files.write(name, text)
        code, out, err = run(file, "--policies", new)
        assert (code, out) == (
            0,
            "1 pod with accelerators: 0 admitted unchanged, 0 edited, 1 denied. The earlier decisions are unknown.\n",
        )
        assert "pass the old policies: --against PATH" in err
        code, out, _ = run(file, "--policies", new, "--against", files.policies("old", *OLD))
        assert code == 1
        assert "1 has a different decision now (4 GPUs, 1.68 USD/h at least): 1 newly denied." in out


def test_an_answer_is_a_record(run: Run, files: Files) -> None:
    """That of /mutate, with its patch, and a denial."""
    old = files.snapshot(*NEW)
    reviews = []
    for gpus in ("1", "4"):
        request = {"uid": "u", "namespace": "team", "operation": "CREATE", "resource": {"resource": "pods"}, "object": pod(gpus=gpus)}
        document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        asked = review.from_document(document)
        reviews.append({**document, **review.answer_review(asked, evaluate(asked, old.facts_for("team")))})
    log = files.write("reviews.jsonl", lines(*reviews))
    assert run(log, "--policies", files.policies("new", *NEW))[0] == 0
    code, out, _ = run(log, "--policies", files.policies("old", *OLD), "-o", "json")
    assert code == 1
    assert json.loads(out)["turns"]["newly-admitted"] == 1


def test_pods_admitted_while_berth_was_away_are_compared_as_they_were_admitted(run: Run, files: Files) -> None:
    """The API server notes that it went on without an answer."""
    away = {"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "mutate.pods.berth.dev"}
    log = files.write("audit.log", lines(event(pod(), annotations=away)))
    code, out, err = run(log, "--policies", files.policies("new", *NEW))
    assert code == 1
    assert "1 edited differently" in out
    assert "admitted while Berth did not answer, compared as admitted unchanged (1)" in err


def test_all_that_is_not_judged_is_counted(run: Run, files: Files) -> None:
    """A line for each reason."""
    one, *_ = recorded(files)
    others = [
        one,
        {**one, "stage": "RequestReceived"},
        {**one, "auditID": "dry", "requestURI": "/api/v1/namespaces/team/pods?dryRun=All"},
        {**one, "auditID": "m", "level": "Metadata", "requestObject": None},
        {**one, "auditID": "c", "annotations": {"audit.k8s.io/truncated": "true"}, "requestObject": None},
        {**one, "auditID": "e", "requestObject": None},
        {**one, "auditID": "p", "verb": "patch", "responseStatus": {"code": 200}},
        {**one, "auditID": "s", "verb": "list"},
        {**one, "objectRef": {"resource": "jobs", "apiGroup": "batch"}},
        {**one, "auditID": "k", "objectRef": {**one["objectRef"], "namespace": "kube-system"}},
        {**one, "auditID": "x", "requestObject": {"metadata": [], "spec": []}},
        event(pod(gpus=None), 99),
        {"kind": "Pod", "apiVersion": "v1", "about": "pods"},
    ]
    log = files.write("audit.log", lines(*recorded(files), *others) + "nonsense pods\n" + lines(one)[:80])
    code, out, err = run(log, "--policies", files.policies("old", *OLD))
    assert code == 0
    assert out.startswith("Of 4 pods with accelerators, none has a different decision now")
    assert err.splitlines() == [
        "berth: skipped: pods that request no accelerator (1)",
        "berth: skipped: pod events at stages other than ResponseComplete (1)",
        "berth: skipped: dry runs (1)",
        "berth: skipped: entries about other resources than pods (1)",
        "berth: skipped: pod events that create no pod: reads, deletions, changes of subresources (1)",
        "berth: skipped: updates of pods (an audit log does not have the previous pod) (1)",
        "berth: skipped: creations at level Metadata, which does not include the pod; log pods at level Request (1)",
        f"berth: skipped: creations whose event was truncated; raise --audit-log-truncate-max-event-size (1; the first: {log}, line 9)",
        "berth: skipped: creations that failed before the API server read the pod (1)",
        "berth: skipped: pods in namespaces that Berth is not called for (1)",
        "berth: skipped: duplicate events, counted once (1)",
        f"berth: skipped: objects that are not valid pods (1; the first: {log}, line 15)",
        f"berth: skipped: objects that are not recordings; to check manifests, use berth try FILE (1; the first: {log}, line 17)",
        f"berth: skipped: entries that are not JSON (1; the first: {log}, line 18)",
        "berth: skipped: files that end in the middle of a line (1)",
    ]


def test_a_log_without_pods_in_it_is_no_proof(run: Run, files: Files) -> None:
    """Of level Metadata nothing can be judged, and an exit code 0 would say that nothing differs."""
    log = files.write("audit.log", lines({**recorded(files)[0], "level": "Metadata", "requestObject": None}))
    code, out, err = run(log, "--policies", files.policies("old", *OLD))
    assert (code, out) == (2, "")
    wanted = "has nothing to evaluate: creations at level Metadata, which does not include the pod; log pods at level Request (1)"
    assert err == f"berth: {log}: {wanted}\n"


def test_what_cannot_be_read_is_told_and_the_rest_is_judged(run: Run, files: Files) -> None:
    """Exit code 2."""
    log = files.write("audit.log", lines(*recorded(files)))
    code, out, err = run(log, f"{log}x", files.write("a.zst", b"\x28\xb5\x2f\xfd"), "--policies", files.policies("old", *OLD))
    assert code == 2
    assert out.startswith("Of 4 pods")
    assert f'{log}x: there is no such file or folder; did you mean "{log}"?' in err
    assert "zstd -dc" in err
    assert run(log, "--policies", files.policies("wrong", policy("x", "Enforced")))[0] == 2
    assert run(log, "--policies", files.policies("old", *OLD), "--processes", "0")[0] == 2


def test_processes_and_pieces_change_nothing(run: Run, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither numbers nor order nor examples; an event in two files counts once, whoever reads them."""
    events = [one for number in range(6) for one in recorded(files, number)]
    for number, one in enumerate(events):
        one["auditID"] = f"id-{number}"
        one["objectRef"]["namespace"] = f"team-{number % 3}"
    text = lines(*events)
    words = [files.write("a.log", text), files.write("a.log.gz", gzip.compress(text.encode())), "--policies", files.policies("new", *NEW)]
    monkeypatch.setattr(pieces, "pieces", pieces.pieces)
    found = {}
    for processes, size in (("1", pieces.PIECE), ("1", 3000), ("2", 3000)):
        monkeypatch.setattr("cli.replaying.processes.pieces", lambda paths, size=size: pieces.pieces(paths, size))
        code, out, err = run(*words, "--processes", processes, "-o", "json")
        assert code == 1
        found[processes, size] = (out, err)
    assert len(set(found.values())) == 1
    value = json.loads(out)
    assert (value["pods"], value["passedOver"]["repeated"]) == (len(events), len(events))


def test_the_memory_of_events_is_bounded(run: Run, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is forgotten, and counts again."""
    monkeypatch.setattr(total_module, "MOST_SEEN", 2)
    log = files.write("audit.log", lines(*recorded(files), *recorded(files)))
    code, out, _ = run(log, "--policies", files.policies("old", *OLD))
    assert (code, out[:9]) == (0, "Of 8 pods")


ODD = 'x\x1b[31m"><script>&%0A::error::\u202e,\ud7ff'


def test_odd_characters_break_no_form(run: Run, files: Files) -> None:
    """Of names, by whoever can write an audit log: terminal, XML, workflow commands, JSON."""
    one = of_job(ODD, ODD, gpus="8")
    one["metadata"]["annotations"] = {ODD: ODD}
    found = event(one, namespace=f"{ODD}\r\n::error::y", annotations=decided(one, files.snapshot(GRACE)))
    words = (files.write("audit.log", lines(found)), "--policies", files.policies("new", *NEW), "--diff")
    for form in ("text", "json", "junit", "github"):
        code, out, _ = run(*words, "-o", form)
        assert code == 1
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\r" not in out
        if form == "junit":
            assert len(ET.fromstring(out).findall(".//failure")) == 1
        elif form == "github":
            assert all(line.startswith(("::warning title=", "::notice title=")) for line in out.splitlines())
            assert "%250A" in out
        elif form == "json":
            assert json.loads(out)["differences"][0]["workload"]["name"] == ODD


def test_junit_has_a_failure_for_each_difference(run: Run, files: Files) -> None:
    """And a test that passes for the others, a suite for each namespace."""
    log = files.write("audit.log", lines(*recorded(files)))
    code, out, err = run(log, "--policies", files.policies("new", *NEW), "-o", "junit")
    assert (code, err) == (1, "")
    root = ET.fromstring(out)
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("team", "2", "1")
    assert [case.get("name") for case in suite] == ["1 pod with the same decision", "Job/train: 3 pods newly denied"]
    failure = suite.find(".//failure")
    assert failure is not None
    assert failure.get("message") == "before: edited, now: denied (BERTH-111), by ClusterGPUPolicy/few (24 GPUs, 10.08 USD/h at least)"
    assert "BERTH-111: the pod requests 8 GPUs" in str(failure.text)


def test_github_shows_warnings_and_the_result(run: Run, files: Files) -> None:
    """Workflow commands, data escaped."""
    log = files.write("audit.log", lines(*recorded(files)) + "pods, cut")
    _, out, _ = run(log, "--policies", files.policies("new", *NEW), "-o", "github")
    warning, notice, passed = out.splitlines()
    assert warning.startswith("::warning title=3 pods newly denied::team Job/train: before: edited, now: denied (BERTH-111), by ")
    assert "%0Apod train-0, " in warning
    assert notice.startswith("::notice title=berth replay::Of 4 pods with accelerators, 3 have a different decision now")
    assert passed == "::notice title=berth replay::skipped: files that end in the middle of a line (1)"


def test_any_amount_of_gpus_can_be_counted(run: Run, files: Files) -> None:
    """A quantity may be larger than any number of the machine."""
    for gpus in ("1e400", "9" * 5000):
        log = files.write("audit.log", lines(event(pod(gpus=gpus), annotations=decided(pod(), files.snapshot(*OLD)))))
        code, out, _ = run(log, "--policies", files.policies("new", *NEW), "-o", "json")
        assert (code, json.loads(out)["gpus"] <= 10**9) == (1, True)


def test_one_namespace_is_judged_alone(run: Run, files: Files) -> None:
    """The others are counted."""
    log = files.write("audit.log", lines(*recorded(files), event(pod("other"), 7, "other")))
    code, out, err = run(log, "--policies", files.policies("new", *NEW), "-n", "other")
    assert (code, out[:8]) == (0, "1 pod wi")
    assert "skipped: pods in other namespaces (4)" in err


def test_prices_are_those_that_are_given(run: Run, files: Files) -> None:
    """For the least that a pod costs on any machine that it may run on."""
    one = of_job("train", "train", gpus="8")
    one["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    log = files.write("audit.log", lines(event(one, annotations=decided(one, files.snapshot(*OLD)))))
    words = (log, "--policies", files.policies("new", *NEW), "-o", "json", "--prices", files.write("prices.yaml", "p5.48xlarge: 80"))
    assert json.loads(run(*words)[1])["usdPerHour"] == 80.0
