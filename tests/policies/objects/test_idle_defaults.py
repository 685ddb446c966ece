"""Defaults that can act on no pod that their policy matches."""

from __future__ import annotations

from typing import Any

import pytest

from policies.objects.idle_defaults import find_idle_defaults

Raw = dict[str, Any]


@pytest.mark.parametrize(
    ("match", "default", "paths"),
    [
        ({"workloads": ["DaemonSet"]}, {"priorityClass": "x", "runtimeClass": "nvidia"}, [("default",)]),
        ({"workloads": ["DaemonSet"]}, {"acceleratorTaints": "Tolerate", "capacity": ["spot"]}, []),
        ({"workloads": ["DaemonSet", "Job"]}, {"priorityClass": "x"}, []),
        ({"gpus": {"min": 2}}, {"mig": {"slice": "10gb"}}, [("default", "mig")]),
        ({"gpus": {"min": 1}}, {"mig": {"slice": "10gb"}}, []),
        ({}, {}, []),
    ],
)
def test_a_default_that_cannot_act_is_found(match: Raw, default: Raw, paths: list[tuple[str, ...]]) -> None:
    """A policy for DaemonSets alone can add tolerations; a slice replaces a whole GPU of a pod that has one."""
    assert [path for path, _ in find_idle_defaults({"match": match, "default": default})] == paths
