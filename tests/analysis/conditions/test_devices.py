"""GPUs that nodes offer twice."""

from __future__ import annotations

from tests.analysis.conditions.found import condition, found, message_of, own, policy

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-7"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "node-7-gpu"},
    "spec": {"driver": "gpu.nvidia.com", "nodeName": "node-7", "pool": {"name": "node-7", "generation": 1}, "devices": [{"name": "gpu-0"}]},
}


def test_the_clusters_policies_tell_it() -> None:
    """Whatever they ask for; no team can mend it, so none is told."""
    all_ = found(policy("p", require={"gpusPerPod": {"max": 8}}), own("mine", "ml", default={"gracePeriod": "1h"}), NODE, SLICE)
    one = condition(all_["p"], "AdvertisedTwice")
    assert one is not None
    assert (one.status, one.reason) == ("True", "DevicePluginAndDRA")
    assert "kubectl label node node-7 nvidia.com/gpu.deploy.device-plugin=false --overwrite" in one.message
    assert condition(all_["mine"], "AdvertisedTwice") is None


def test_one_way_of_offering_is_as_it_should_be() -> None:
    """No condition, rather than one that is False."""
    for there in (NODE, SLICE):
        assert not message_of(found(policy("p"), there)["p"], "AdvertisedTwice")
