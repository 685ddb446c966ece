"""Every kind of workload that says otherwise than Kubernetes' own what its pods are like, by manifests as their authors write them.

Each case of ``tests/kinds`` is a manifest, and what `berth try` says and shows of it under one set of policies. BERTH_WRITE_CASES=1 writes
that anew: read the difference.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from analysis.admission import report
from analysis.admission.manifest_results import admit_manifest
from analysis.admission.manifests import read_manifest
from analysis.admission_preview import Admission
from documents.diff import unified
from documents.yaml_reader import one_value
from kube.tree import set_at
from policies.document import Document, InputError
from policies.state.snapshot import Snapshot
from policies.workloads.pods import Around
from tests.support.cases import golden
from tests.support.cases.kind_manifests import kind_cases
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
SPEC: dict[str, Any] = {
    "mode": "Enforce",
    "require": {"requestsEqualLimits": ["accelerators"]},
    "default": {"acceleratorTaints": "Tolerate", "families": {"in": ["ampere"]}, "gracePeriod": "10m", "protectFor": "Always"},
}
OLD = ("Job", "CronJob", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "JobSet", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob")
ELSEWHERE = (*OLD, "JAXJob", "RayCluster", "RayJob", "RayService", "VolcanoJob")
"""kinds with pod templates alone, of which test_manifests.py and test_match_workloads.py have manifests"""


def title(case: tuple[Path, int, dict[str, Any]]) -> str:
    return f"{case[2]['manifest']['kind']}: {case[2].get('about', 'plain')}"


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "p"}, "spec": SPEC}
    return build(golden.policies_of([policy], CATALOG), CATALOG, platforms=["karpenter-aws"])


def around(case: dict[str, Any]) -> Around:
    """Other objects of the input."""
    named = {(one["kind"], one["metadata"]["name"]): Document(file="f", value=one) for one in case.get("others", ())}
    return Around(find=lambda kinds, _, name: next((named[k, name] for _, k in kinds if (k, name) in named), None), texts=one_value)


def as_facts(case: dict[str, Any], snapshot: Snapshot) -> dict[str, Any]:
    """What is said and shown of a case."""
    outcome = admit_manifest(
        read_manifest(Document(file="f", value=case["manifest"]), CATALOG, "team", around=around(case)), Admission(snapshot)
    )
    again = admit_manifest(
        read_manifest(Document(file="f", value=outcome.after), CATALOG, "team", around=around(case)), Admission(snapshot)
    )
    if not outcome.denied:
        assert all(edit in pod.unshown for pod in again.pods for edit in {e.path[:2] for e in pod.edits}), "what is shown needs edits again"
    lines = (
        [line.rstrip("\n") for line in unified(case["manifest"], outcome.after, "x")][2:] if outcome.after is not case["manifest"] else []
    )
    return {
        "says": [*report.report_lines(outcome), *dict.fromkeys(report.of_platform(outcome))],
        "shows": [line for line in lines if line[0] in "+-"],
    }


@pytest.mark.parametrize("case", kind_cases(), ids=title)
def test_a_manifest_is_judged_and_shown(case: tuple[Path, int, dict[str, Any]], snapshot: Snapshot) -> None:
    """Each pod by what its controller makes of the manifest; edits in the manifest's own fields, and told where it has none."""
    path, number, values = case
    found = as_facts(values, snapshot)
    if os.environ.get("BERTH_WRITE_CASES"):
        write(path, number, found)
    else:
        assert found == {key: values.get(key) for key in found}


def write(path: Path, number: int, found: dict[str, Any]) -> None:
    """Under a lock: cases of one file may be written by several workers at once."""
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read()
        whole = yaml.safe_load(text)
        whole[number] |= found
        head = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
        file.seek(0)
        file.truncate()
        file.write(head + yaml.safe_dump(whole, sort_keys=False, width=150, allow_unicode=True))


def test_every_kind_has_its_manifest() -> None:
    """Whatever the catalog says pods are like, somebody has written it down once."""
    written = {(case["manifest"]["apiVersion"].rpartition("/")[0], case["manifest"]["kind"]) for _, _, case in kind_cases()}
    lacking = [
        w.name
        for w in CATALOG.workloads
        if w.describes_pods
        and w.name not in ELSEWHERE
        and not any((v.rpartition("/")[0], w.kind or w.name) in written for v in w.api_version)
    ]
    assert lacking == []


WRONG: tuple[Any, ...] = (None, 7, True, "x", [], {}, [1], {"a": 1}, [None], [{}])


@pytest.mark.parametrize("case", kind_cases(), ids=title)
def test_a_wrong_type_anywhere_is_bad_input_or_judged(case: tuple[Path, int, dict[str, Any]], snapshot: Snapshot) -> None:
    """Nothing that a manifest may hold ends `try`."""
    random = Random(case[1])
    beside = around(case[2])
    for path in list(paths(case[2]["manifest"])):
        for wrong in random.sample(WRONG, 4):
            value = set_at(case[2]["manifest"], path, wrong)
            if not isinstance(value.get("apiVersion"), str) or value.get("kind") == "AdmissionReview":
                continue
            assert facts_or_error(value, beside, snapshot)


def facts_or_error(value: Any, beside: Around, snapshot: Snapshot) -> list[str]:
    try:
        outcome = admit_manifest(read_manifest(Document(file="f", value=value), CATALOG, "team", around=beside), Admission(snapshot))
    except InputError as error:
        return [str(error)]
    return [*report.report_lines(outcome), *report.of_platform(outcome)]


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from paths(inner, (*at, key))


def test_words_that_cannot_be_laid_over_a_runtime_are_told() -> None:
    """A container without a name could be any."""
    case = next(values for path, _, values in kind_cases() if path.stem == "kserve" and values.get("others"))
    value = set_at(case["manifest"], ("spec", "predictor", "containers"), [{"image": "i"}])
    with pytest.raises(InputError, match=r"spec\.predictor: containers must be a list of maps, each with its name"):
        read_manifest(Document(file="f", value=value), CATALOG, "team", around=around(case))
