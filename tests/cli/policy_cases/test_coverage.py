"""Which fields count as exercised, held against deciding every case anew without each field."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import yaml

from cli.policy_cases.case import DEFAULTS
from cli.policy_cases.coverage import Coverage
from cli.policy_cases.decisions import read_request
from cli.policy_cases.run import run
from cli.policy_cases.worlds import CaseError, Worlds
from policies.policy import API_VERSION
from tests.support.cases import golden
from tests.support.cases.golden import Case
from tests.support.counts import count

INLINE = [case for case in golden.cases() if isinstance(case.given["policies"], list) and case.given["policies"]]


def paths(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key within a map, at any depth."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*at, key)
        yield from paths(inner, (*at, key))


def without(value: Any, path: tuple[str, ...]) -> Any:
    """A copy without one key."""
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


def outcome_without(case: Case, number: int, path: tuple[str, ...], worlds: Worlds) -> Mapping[str, Any] | None:
    """Return what comes of the case with one key less in its policies, read and decided anew; None if they can't be read."""
    policies = list(case.given["policies"])
    policies[number] = {**policies[number], "spec": without(policies[number]["spec"], path[1:])}
    document = replace(case.read.document, file=f"{case.path}-{number}-{'.'.join(path)}")  # a world is remembered by the name of its case
    try:
        return read_request(replace(case.read, document=document, given={**case.given, "policies": policies}), worlds).decide().outcome
    except CaseError:
        return None


def test_a_field_is_exercised_where_the_case_differs_without_it() -> None:
    """Of cases drawn at random, field by field: what counts as exercised is what makes a difference, no more and no less."""
    random, exercised, idle, worlds = Random(18), 0, 0, Worlds()
    for case in random.sample(INLINE, count(50, 400)):
        coverage, question = Coverage(), read_request(case.read, worlds)
        decision = question.decide()
        coverage.add(question, decision)
        numbers = {f"{policy['kind']}/{id_of(policy)}": number for number, policy in enumerate(case.given["policies"])}
        for field in coverage.fields:
            outcome = outcome_without(case, numbers[field.policy], tuple(field.path.split(".")), worlds)
            if outcome is not None:  # else a map around it was left empty, and is taken away with it
                assert field.exercised == (outcome != decision.outcome), (case.name, field)
                exercised, idle = exercised + field.exercised, idle + (not field.exercised)
    assert exercised > 5
    assert idle > 3


def id_of(one: dict[str, Any]) -> str:
    metadata = one["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def test_every_field_is_counted_once() -> None:
    """Each leaf of a spec but its mode is a field, or within one, or what no such object can do without."""
    wrong, worlds = list[str](), Worlds()
    for case in Random(5).sample(INLINE, count(40, len(INLINE))):
        coverage, question = Coverage(), read_request(case.read, worlds)
        coverage.add(question, question.decide())
        fields = [(field.policy, tuple(field.path.split("."))) for field in coverage.fields]
        wrong += [f"{case.name}: {field} twice" for field in set(fields) if fields.count(field) > 1]
        wrong += [f"{case.name}: {'.'.join(path)} of {policy} is in no field" for policy, path in uncounted(case, fields)]
    assert wrong == []


def uncounted(case: Case, fields: list[tuple[str, tuple[str, ...]]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the keys of a case's policies that are neither a field, nor around one or within one."""
    for policy in case.given["policies"]:
        name = f"{policy['kind']}/{id_of(policy)}"
        own = {path for owner, path in fields if owner == name}
        for path in paths({"spec": policy["spec"]}) if policy["spec"].keys() - {"mode"} else ():
            known = any(path[: len(field)] == field or field[: len(path)] == path for field in own)
            if not known and path[1:2] not in ((), ("mode",)) and not unremovable(policy, path):
                yield name, path


def unremovable(one: dict[str, Any], path: tuple[str, ...]) -> bool:
    """A template without labels is none; what is written as nothing gives nothing."""
    inner: Any = one
    for key in path:
        inner = inner[key]
    return path[:2] == ("spec", "labels") or inner in ({}, None)


POLICY = {
    "apiVersion": API_VERSION,
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "few"},
    "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 4}, "protection": {"max": "24h"}}, "default": {"gracePeriod": "10m"}},
}


def case_of(gpus: int) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"why": "w", "policies": ["p.yaml"], "pod": {"spec": {"containers": [container]}}, "expect": {}}


def missed(folder: Path, *gpus: int) -> list[str]:
    """The fields of one policy that only pods with this number of GPUs do not exercise."""
    (folder / "p.yaml").write_text(yaml.safe_dump(POLICY))
    (folder / "c.yaml").write_text(yaml.safe_dump_all([case_of(number) for number in gpus]))
    return [one.path for one in run([str(folder / "c.yaml")], DEFAULTS).coverage.missed]


def test_cases_add_up(tmp_path: Path) -> None:
    """One pod shows the limit, another the default; that a policy matches shows nothing."""
    assert missed(tmp_path, 8) == ["spec.default.gracePeriod", "spec.require.protection.max"]
    assert missed(tmp_path, 2) == ["spec.require.gpusPerPod.max", "spec.require.protection.max"]
    assert missed(tmp_path, 2, 8) == ["spec.require.protection.max"]
    assert missed(tmp_path, 8, 2) == ["spec.require.protection.max"]


def test_one_policy_file_is_one_policy_in_all_cases(tmp_path: Path) -> None:
    """Whichever cases name it: its fields are counted once, under its file."""
    assert missed(tmp_path, 2, 8, 16) == ["spec.require.protection.max"]
    (only,) = {one.file for one in run([str(tmp_path / "c.yaml")], DEFAULTS).coverage.fields}
    assert only == str(tmp_path / "p.yaml")


def test_without_fields_all_are_exercised(tmp_path: Path) -> None:
    """A folder whose cases have no policy has nothing to miss."""
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({**case_of(1), "policies": []}))
    assert run([str(tmp_path)], DEFAULTS).coverage.percent == 100
