"""Claims that are applied again as their author wrote them."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import pytest

from policies.claims.cel import OneOf
from policies.claims.restore import restore_claim
from policies.patch.record import APPLIED, digest
from tests.support.generators.written_claims import claim, exactly, first_of

Raw = dict[str, Any]
OWN = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].productName == 'x'"}}
BERTHS = {"cel": {"expression": OneOf(driver="gpu.nvidia.com", domain="gpu.nvidia.com", attribute="type", values=("gpu",)).text}}


def stored(made: Raw, *paths: str) -> Raw:
    """The claim with a selector of Berth's at the end of the list of each of these requests, and the record of it."""
    out, entries = copy.deepcopy(made), []
    for path in paths:
        at: Any = out
        for step in path.strip("/").split("/"):
            at = at[int(step)] if isinstance(at, list) else at[step]
        at.setdefault("selectors", []).append(BERTHS)
        where = f"{path}/selectors/{len(at['selectors']) - 1}"
        entries.append({"by": ["ClusterGPUPolicy/a"], "rule": "claims", "path": where, "is": digest(BERTHS)})
    out["metadata"]["annotations"] = {APPLIED: json.dumps(entries)}
    return out


CASES = {
    "one": (claim(exactly()), ("/spec/devices/requests/0/exactly",)),
    "two": (claim(exactly(), exactly()), ("/spec/devices/requests/0/exactly", "/spec/devices/requests/1/exactly")),
    "two in one": (claim(exactly()), ("/spec/devices/requests/0/exactly",) * 2),
    "beside its own": (claim(exactly(selectors=[OWN])), ("/spec/devices/requests/0/exactly",)),
    "ways": (claim(first_of(exactly(), exactly())), ("/spec/devices/requests/0/firstAvailable/1",)),
    "a template": (claim(exactly(), template=True), ("/spec/spec/devices/requests/0/exactly",)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("annotations", [None, {}, {"a": "b"}])
def test_what_is_applied_again_is_as_it_is_stored(name: str, annotations: Raw | None) -> None:
    """Spec and record, whatever annotations are sent; nothing else is touched."""
    made, paths = CASES[name]
    old, new = stored(made, *paths), copy.deepcopy(made)
    if annotations is not None:
        new["metadata"]["annotations"] = annotations
    done = jsonpatch.apply_patch(new, restore_claim(old, new))
    assert done["spec"] == old["spec"]
    assert done["metadata"] == {"name": "gpus", "annotations": {**(annotations or {}), APPLIED: old["metadata"]["annotations"][APPLIED]}}
    assert restore_claim(old, done) == ()


@pytest.mark.parametrize("name", CASES)
def test_what_really_changes_is_left_to_the_api_server(name: str) -> None:
    """Which says that the spec is immutable."""
    made, paths = CASES[name]
    old = stored(made, *paths)
    new = json.loads(json.dumps(made).replace('"count": 1', '"count": 2'))
    assert restore_claim(old, new) == ()
    assert restore_claim(made, new) == ()


def test_a_record_that_is_cut_names_no_paths() -> None:
    """Then every selector that reads as a policy's is left out of account."""
    made, paths = CASES["beside its own"]
    old = stored(made, *paths)
    old["metadata"]["annotations"][APPLIED] = "12 entries, 0a1b2c3d"
    done = jsonpatch.apply_patch(copy.deepcopy(made), restore_claim(old, made))
    assert done["spec"] == old["spec"]


@pytest.mark.parametrize("record", ["[]", "null", "{}", '[{"path": "/spec", "is": "x"}]', 1, None])
def test_a_record_that_its_author_wrote_gives_nothing_away(record: object) -> None:
    """The result is never anything but what is stored."""
    made, paths = CASES["one"]
    old = stored(made, *paths)
    old["metadata"]["annotations"][APPLIED] = record
    updates: list[Raw] = [made, claim(exactly(count=8)), {"metadata": {}, "spec": None}, {}]
    for new in updates:
        found = restore_claim(old, new)
        assert found == () or found[0]["value"] == old["spec"]
