"""The verdict on a pod in one sentence."""

from __future__ import annotations

import pytest

from analysis.why.explanation import Explanation, PlaceKind
from console.job import verdict
from policies.placement.fleet import Outlook

NODE = PlaceKind(title="", names=("a",), pool=False, blockers=(), outlook="now")


@pytest.mark.parametrize(
    ("outlook", "unchecked", "sentence"),
    [
        ("now", (), "It is pending, but no blocker was found. It should start soon."),
        ("now", ("podsOnNodes",), "It is pending, but no blocker was found. It should start soon, as far as was checked."),
        ("never", ("podsOnNodes",), "It can never be scheduled as written: nothing in the cluster can run it."),
    ],
)
def test_a_place_is_promised_as_far_as_it_was_checked(outlook: Outlook, unchecked: tuple[str, ...], sentence: str) -> None:
    """What keeps a pod off for certain needs no such words."""
    found = Explanation(title="pod/p", namespace="n", state="pending", where=(NODE,), outlook=outlook, unchecked=unchecked)
    assert verdict.of_object(found).sentence == sentence
