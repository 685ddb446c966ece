"""Shared memory: what the golden cases do not reach."""

from __future__ import annotations

import pytest

from tests.policies.rules.test_filled_fields import GPU, judged


@pytest.mark.parametrize(
    ("path", "there"),
    [("/dev/shm", True), ("dev/shm", True), ("//dev//shm/", True), ("/dev/./shm/x", True), ("/dev", True), ("/x/../dev/shm", True),
     ("/dev/shm2", False), ("/dev/nvidia0", False), ("/data/dev/shm", False), (7, False)],
    ids=repr,
)  # fmt: skip
def test_what_is_mounted_at_shared_memory(path: object, *, there: bool) -> None:
    """However the path is written: as the kubelet reads it, not as it looks."""
    mounts = [{"name": "a", "mountPath": path}]
    found = judged({"default": {"sharedMemory": "1Gi"}}, containers=[{**GPU, "volumeMounts": mounts}], volumes=[{"name": "a"}])
    assert bool(found.edits) is not there


def test_a_volume_keeps_its_place_in_the_patch() -> None:
    """Other volumes and mounts are as they were, and the record names the very index of ours."""
    mounts = [{"name": "a", "mountPath": "/a"}]
    found = judged(
        {"default": {"sharedMemory": "1Gi"}}, containers=[{**GPU, "volumeMounts": mounts}], volumes=[{"name": "a"}, {"name": "b"}]
    )
    assert [operation["path"] for operation in found.patch][:2] == ["/spec/volumes/-", "/spec/containers/0/volumeMounts/-"]
    assert "/spec/volumes/2" in str(found.patch)
    assert "/spec/containers/0/volumeMounts/1" in str(found.patch)
