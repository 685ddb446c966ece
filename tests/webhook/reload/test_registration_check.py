"""What a replica tells of the registration: made of its own catalog or another, and which names no condition catches."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from cluster.client.errors import Reply
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import PolicySet
from policies.state.snapshot import Snapshot
from registration.configurations import Service, manifests
from registration.entries import InstallChoices
from telemetry import log
from tests.support.generators.random_worlds import catalog
from tests.support.snapshots import build
from webhook.reload.registration_check import COVER, FIRST_PATH, PATHS, Registered, RegistrationCheck

Raw = dict[str, Any]
NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"acme.example/gpu": "1", "nvidia.com/gpu": "8"}}}
SNAPSHOT = replace(build(PolicySet(), catalog(), platforms=("gfd",)), cluster=ClusterFacts.from_objects([NODE]))


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Raw]:
    logged: list[Raw] = []
    monkeypatch.setattr(log, "_sink", lambda line: logged.append(json.loads(line)))
    return logged


class Api:
    """Answers for both configurations, and for the one that is called first."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = dict(zip((*PATHS, FIRST_PATH), replies, strict=False))

    async def call(self, method: str, path: str) -> Reply:
        assert method == "GET"
        return self.replies[path]


def looked(*replies: Reply, snapshot: Snapshot = SNAPSHOT, found: Registered | None = None) -> Registered:
    """After one look."""
    known = found if found is not None else Registered()
    asyncio.run(RegistrationCheck(Api(*replies), lambda: snapshot, known).look())  # type: ignore[arg-type]
    return known


def registered(chosen: InstallChoices = InstallChoices(), change: Raw | None = None) -> list[Reply]:  # noqa: B008 - immutable
    found = manifests(catalog(), Service(), chosen=chosen)
    for one in found:
        one["metadata"]["annotations"] = {**one["metadata"]["annotations"], **(change or {})}
    return [Reply(200, one) for one in found]


def test_a_registration_of_this_catalog(lines: list[Raw]) -> None:
    """Whatever was chosen: what it was is read from it. A name that it was told is caught."""
    for chosen in (
        InstallChoices(names=("acme.example/gpu",)),
        InstallChoices(claims="Off", names=("a.b/c", "acme.example/gpu"), excluded=("x",)),
    ):
        assert looked(*registered(chosen)) == Registered(differs=False, missing=(), overlooked=())
    assert lines == []


def test_a_registration_of_another_catalog(lines: list[Raw]) -> None:
    """Told once, and by /readyz as long as it is so. One without a digest is from before there were any."""
    found = looked(*registered(change={"berth.dev/made-of": "0" * 16}))
    assert found.differs
    assert next(iter(found.sentences())).startswith("the webhook configurations do not match this replica's catalog")
    looked(*registered(change={"berth.dev/made-of": "0" * 16}), found=found)
    assert [line["event"] for line in lines] == ["registration_differs", "resources_overlooked"]
    assert lines[0]["text"] == next(iter(found.sentences())), "the log says what to type, too"
    bare: Raw = {"metadata": {"name": "zz-berth"}}
    assert looked(Reply(200, bare), Reply(200, bare)).differs


def test_names_that_no_condition_catches(lines: list[Raw]) -> None:
    """Those of the cluster that are in neither list, with or without a registration that can be read; told when they change."""
    found = looked(*registered())
    assert (found.differs, found.overlooked) == (False, ("acme.example/gpu",))
    assert list(found.sentences()) == [
        "the webhook configurations match this replica's catalog",
        f"no match condition covers acme.example/gpu, which may be accelerators; {COVER}",
    ]
    looked(*registered(), found=found)
    assert [(line["event"], line["names"]) for line in lines] == [("resources_overlooked", ["acme.example/gpu"])]
    looked(*registered(InstallChoices(names=("acme.example/gpu",))), found=found)
    assert found.overlooked == ()


@pytest.mark.parametrize("reply", [Reply(500, {}), Reply(403, "no"), Reply(200, [])])
def test_a_registration_that_cannot_be_read(reply: Reply, lines: list[Raw]) -> None:
    """Nobody says that it is right, wrong or missing."""
    found = looked(reply, reply)
    assert (found.differs, list(found.sentences())) == (
        None,
        [f"no match condition covers acme.example/gpu, which may be accelerators; {COVER}"],
    )
    assert [line["event"] for line in lines] == ["resources_overlooked"]
    assert "berth_registration_current" not in exposed(found)


def exposed(found: Registered) -> dict[str, float]:
    """The metrics."""
    return {sample.name: sample.value for metric in found.collect_metrics() for sample in metric.samples}


GONE = Reply(404, {})
NAMES = InstallChoices(names=("acme.example/gpu",))


@pytest.mark.parametrize("without", ["webhooks", "rules"])
def test_a_configuration_that_calls_nobody_is_missing(without: str, lines: list[Raw]) -> None:
    """Whatever its annotations say, once two looks have seen it: that of a first installation has no rules for some seconds."""
    mutating, validating = registered(NAMES)
    webhooks = [{**entry, "rules": []} for entry in mutating.body["webhooks"]] if without == "rules" else []
    found, empty = Registered(), Reply(200, {**mutating.body, "webhooks": webhooks})
    check = RegistrationCheck(Api(empty, validating), lambda: SNAPSHOT, found)  # type: ignore[arg-type]
    asyncio.run(check.look())
    assert (found.missing, lines) == ((), [])
    asyncio.run(check.look())
    assert (found.missing, found.is_current) == (("MutatingWebhookConfiguration/zz-berth",), False)
    assert [line["event"] for line in lines] == ["registration_missing"]


@pytest.mark.parametrize(
    ("gone", "names", "effect"),
    [
        ((0, 1), ["MutatingWebhookConfiguration/zz-berth", "ValidatingWebhookConfiguration/zz-berth"], "no policy applies"),
        ((0,), ["MutatingWebhookConfiguration/zz-berth"], "pods are not mutated"),
        ((1,), ["ValidatingWebhookConfiguration/zz-berth"], "changes by other webhooks are not checked"),
        ((2,), ["MutatingWebhookConfiguration/berth-queues"], "workloads get no queue"),
    ],
    ids=str,
)
def test_a_missing_configuration_is_told_once_and_when_it_is_back(
    gone: tuple[int, ...], names: list[str], effect: str, lines: list[Raw]
) -> None:
    """In the log by name, by metrics that are 0, and in one sentence; whatever the API server answers while it fails changes nothing."""
    there = [*registered(replace(NAMES, queues=True)), Reply(200, {"webhooks": [{}]})]
    found = looked(*there)
    assert (lines, found.is_well) == ([], True)
    missing = [GONE if number in gone else reply for number, reply in enumerate(there)]
    for replies in (missing, missing, [Reply(503, "")] * 3, missing):
        looked(*replies, found=found)
        assert (exposed(found)["berth_registered"], exposed(found)["berth_registration_current"]) == (0.0, 0.0)
        assert effect in next(iter(found.sentences()))
    looked(*there, found=found)
    assert [(line["event"], line["names"]) for line in lines if "names" in line and "registration" in line["event"]] == [
        ("registration_missing", names), ("registration_back", names),
    ]  # fmt: skip
    assert (exposed(found)["berth_registered"], exposed(found)["berth_registration_current"], found.is_well) == (1.0, 1.0, True)


def test_nothing_is_said_before_there_are_policies() -> None:
    """Nothing is known to compare with."""
    known = Registered()
    asyncio.run(RegistrationCheck(Api(*registered()), lambda: None, known).look())  # type: ignore[arg-type]
    assert (known, list(known.sentences())) == (Registered(), [])
