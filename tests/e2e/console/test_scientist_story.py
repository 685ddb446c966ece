"""A data scientist: a Job that Berth denies, the link in what kubectl prints, the fix copied there and applied, a pod that runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.console.desk import Desk

TEAM = "speech"
POLICY = "no-small-gpus"
JOB = "finetune"
SELECTOR = ("nvidia.com/gpu.product", "Tesla-T4")


def policy() -> dict[str, Any]:
    """In Enforce: T4s are for others, and GPU nodes are tolerated."""
    match = {"namespaceSelector": {"matchLabels": {"team": TEAM}}}
    spec = {"mode": "Enforce", "match": match, "require": {"models": {"notIn": ["T4"]}}, "default": {"acceleratorTaints": "Tolerate"}}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": POLICY}, "spec": spec}


def job() -> dict[str, Any]:
    """That of somebody who asks for T4s."""
    container = {"name": "trainer", "image": "registry.example/trainer:1", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    pod = {
        "metadata": {"annotations": {"tests.berth.dev/runs-for": "2h"}},
        "spec": {"nodeSelector": dict([SELECTOR]), "restartPolicy": "Never", "containers": [container]},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": JOB, "namespace": TEAM}, "spec": {"template": pod}}


@pytest.fixture(autouse=True)
def _gone_afterwards(desk: Desk) -> Iterator[None]:
    """Policies of a whole cluster would act in other tests."""
    desk.apply(policy())
    yield
    desk.cluster.api.delete(policy())


def test_the_fix_of_a_denied_job_is_copied_and_runs(desk: Desk, tmp_path: Path) -> None:
    """What kubectl warns of ends with an address. There are the verdict, what to type, and the manifest mended: what its button copies, and
    the command below it, make a pod that runs. In the field below the verdict changes with what one types."""
    browser, watched = desk.browser, desk.watched
    desk.once(lambda: "BERTH-121" in applied(desk, "--dry-run=server"), "the policy to act")
    (address,) = set(re.findall(r"http://\S+", applied(desk)))
    desk.once(lambda: seen(desk, address), "the console to have read the Job")
    assert watched.wrong() == []

    field = browser.find("textarea[name=manifest]")
    text: str = browser.run("return arguments[0].value", field.reference)
    lines = [line for line in text.splitlines() if line.strip() not in ("nodeSelector:", f"{SELECTOR[0]}: {SELECTOR[1]}")]
    assert len(lines) == len(text.splitlines()) - 2, "the page shows what was applied"
    field.clear()
    field.type("\n".join(lines))
    desk.once(lambda: browser.find_all("#changed .verdict.good"), "the verdict on the field")
    assert browser.find_all("#answer .verdict.bad"), "that of the Job stays"
    assert [*watched.asked_elsewhere(), *watched.complaints()] == []

    desk.once(lambda: seen(desk, address), "the page of the Job")
    browser.call("POST", "/permissions", {"descriptor": {"name": "clipboard-read"}, "state": "granted"})
    browser.find("[data-copy=fix-yaml]").click()
    copied = desk.once(lambda: browser.run("return navigator.clipboard.readText()"), "the manifest to be copied")
    command = browser.find("#fix-command").text.split()
    assert command[0] == "kubectl"
    (tmp_path / "fix.yaml").write_text(copied)
    done = desk.kubectl(*(str(tmp_path / word) if word == "fix.yaml" else word for word in command[1:]))
    assert done.returncode == 0, done.stderr
    assert "BERTH" not in done.stderr, "nothing more to mend"
    desk.once(lambda: phases(desk) == {"Running"}, "its pod to run")


def applied(desk: Desk, *words: str) -> str:
    """What kubectl warns of."""
    done = desk.kubectl("apply", *words, "-f", "-", given=json.dumps(job()))
    assert done.returncode == 0, done.stderr
    return done.stderr


def seen(desk: Desk, address: str) -> bool:
    """Whether the page behind the address has the verdict, and what to do: the policy is read now and then, the Job at once."""
    desk.watched.open(address.removeprefix(desk.watched.base))
    return bool(desk.browser.find_all(".verdict.bad")) and desk.says("Fix: ") and desk.says(f"required by ClusterGPUPolicy/{POLICY}")


def phases(desk: Desk) -> set[str]:
    """Of the pods of the Job."""
    pods = desk.cluster.api.list("v1", "Pod", TEAM, labelSelector=f"batch.kubernetes.io/job-name={JOB}")
    return {pod["status"]["phase"] for pod in pods}
