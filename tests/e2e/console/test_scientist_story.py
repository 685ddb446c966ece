"""A data scientist: a Job that Berth refuses, the link in what kubectl prints, the manifest mended and copied there, a pod that runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.console.desk import Desk
from tests.support.browser.webdriver import CONTROL

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


def test_a_refused_job_is_mended_on_the_page(desk: Desk) -> None:
    """What kubectl warns of ends with an address. There are the verdict, what to type, and the manifest in a field: it is changed as the
    page says, the verdict changes with it, and what is copied from the field runs."""
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
    desk.once(lambda: browser.find_all(".verdict.good"), "the verdict to change")
    assert [*watched.asked_elsewhere(), *watched.complaints()] == [], "the answer above the field may grow and shrink: it was asked for"

    field.click()
    browser.press(CONTROL, "a", "c")
    browser.call("POST", "/permissions", {"descriptor": {"name": "clipboard-read"}, "state": "granted"})
    copied = browser.run("return navigator.clipboard.readText()")
    done = desk.kubectl("replace", "--force", "-f", "-", given=copied)
    assert done.returncode == 0, done.stderr
    desk.once(lambda: phases(desk) == {"Running"}, "its pod to run")


def applied(desk: Desk, *words: str) -> str:
    """What kubectl warns of."""
    done = desk.kubectl("apply", *words, "-f", "-", given=json.dumps(job()))
    assert done.returncode == 0, done.stderr
    return done.stderr


def seen(desk: Desk, address: str) -> bool:
    """Whether the page behind the address has the verdict, and what to do: the policy is read now and then, the Job at once."""
    desk.watched.open(address.removeprefix(desk.watched.base))
    return bool(desk.browser.find_all(".verdict.bad")) and desk.says("Do: ") and desk.says(f"asked by ClusterGPUPolicy/{POLICY}")


def phases(desk: Desk) -> set[str]:
    """Of the pods of the Job."""
    pods = desk.cluster.api.list("v1", "Pod", TEAM, labelSelector=f"batch.kubernetes.io/job-name={JOB}")
    return {pod["status"]["phase"] for pod in pods}
