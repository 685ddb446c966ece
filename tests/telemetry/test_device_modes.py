"""What the metrics and the log tell of how nodes offer their devices."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_modes import Advertised, AdvertisedTwice
from policies.facts.offered_devices import Offering, Stack
from policies.policy import PolicySet
from policies.state.snapshot import Snapshot
from telemetry import log
from telemetry.device_modes import collect_device_modes, sentences, tell
from telemetry.exposition import Scraped
from tests.support.generators.random_worlds import catalog
from tests.support.snapshots import build

UNDISCOVERED = ClusterFacts(stacks={("GPUCluster", "c"): Stack(100, discovers=False)}, offerings={"n": Offering(gpus=True)})


def snapshot(facts: ClusterFacts | None = None, *twice: AdvertisedTwice) -> Snapshot:
    made = build(PolicySet(), catalog(), platforms=("gfd",), cluster=facts)
    return replace(made, advertised=Advertised((("nvidia", "both", 2), ("nvidia", "dra", 1)), twice)) if twice else made


def twice(node: str) -> AdvertisedTwice:
    return AdvertisedTwice("gpu.nvidia.com", ("nvidia.com/gpu",), node)


def samples(now: Snapshot | None) -> dict[tuple[str, ...], float]:
    registry = CollectorRegistry()
    registry.register(Scraped(lambda: collect_device_modes(now)))
    found = text_string_to_metric_families(generate_latest(registry).decode())
    return {(sample.name, *sorted(sample.labels.values())): sample.value for family in found for sample in family.samples}


def test_nodes_are_counted_by_vendor_and_mode() -> None:
    """None before there is anything to decide by."""
    assert samples(None) == {}
    assert samples(snapshot()) == {("berth_labels_unmaintained",): 0}
    assert samples(snapshot(None, twice("a"))) == {
        ("berth_gpu_nodes", "both", "nvidia"): 2,
        ("berth_gpu_nodes", "device-plugin", "nvidia"): 0,
        ("berth_gpu_nodes", "dra", "nvidia"): 1,
        ("berth_labels_unmaintained",): 0,
    }


def test_label_keys_on_which_nothing_is_written_are_counted() -> None:
    """The four of GPU Feature Discovery; the sentence names them."""
    now = snapshot(UNDISCOVERED)
    assert samples(now)["berth_labels_unmaintained",] == 4
    assert "nvidia.com/gpu.family, nvidia.com/gpu.product" in "".join(sentences(now))


def test_the_log_tells_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: another first node, as nodes come and go, is nothing new; nor is the end of it."""
    written: list[str] = []
    monkeypatch.setattr(log, "write", lambda event, level="info", **fields: written.append(json.dumps([event, level, fields])))
    tell(None, snapshot())
    tell(snapshot(), snapshot(None, twice("a")))
    tell(snapshot(None, twice("b")), snapshot(None, twice("a")))
    tell(snapshot(None, twice("a")), snapshot())
    assert [json.loads(one)[:2] for one in written] == [["gpu_nodes", "warning"]]
    tell(snapshot(), snapshot(UNDISCOVERED))
    assert len(written) == 2
