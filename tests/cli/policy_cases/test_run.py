"""Folders of cases: what is read, what is passed over, and what is said of bad input beside cases that run all the same."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.policy_cases.case import DEFAULTS
from cli.policy_cases.decisions import read_request
from cli.policy_cases.files import files
from cli.policy_cases.outcome import Sentence
from cli.policy_cases.run import Run, differences, format_outcome, run, write_expectation
from cli.policy_cases.worlds import Worlds
from documents.files import read_documents
from policies.document import InputError
from policies.policy import API_VERSION
from tests.support.cases import golden

LIMIT = {
    "apiVersion": API_VERSION,
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "few"},
    "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 4}}},
}


def case(**change: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    return {
        "why": "w",
        "policies": [LIMIT],
        "pod": {"spec": {"containers": [container]}},
        "expect": {"violations": ["BERTH-111"]},
        **change,
    }


def write(folder: Path, **documents: Any) -> Path:
    """Files of these documents; a name may have folders, ``a__b``."""
    for name, value in documents.items():
        file = folder / f"{name.replace('__', '/')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else yaml.safe_dump_all(value if isinstance(value, list) else [value]))
    return folder


def results(found: Run) -> dict[str, str]:
    return {Path(one.case.document.file).stem: one.result for one in found.tested}


def test_folders_are_searched(tmp_path: Path) -> None:
    """Down to the last folder; hidden ones, other files and objects that stand between the cases are passed over."""
    write(tmp_path, a=case(), b__c__d=case(), policy=LIMIT, _hidden=case())
    write(tmp_path / ".git", x=case())
    (tmp_path / "notes.txt").write_text("no YAML: at all: {")
    found = run([str(tmp_path)], DEFAULTS)
    assert found.errors == []
    assert results(found) == {"a": "passed", "d": "passed", "_hidden": "passed"}


def test_a_file_named_twice_is_run_once(tmp_path: Path) -> None:
    """As itself and in its folder."""
    write(tmp_path, a=case())
    assert len(run([str(tmp_path), str(tmp_path / "a.yaml")], DEFAULTS).tested) == 1


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"policies": ["nowhere.yaml"]}, "nowhere.yaml: there is no such file or folder"),
        (
            {"policies": [{**LIMIT, "spec": {"requires": {}}}]},
            'policies[0].spec.requires: unknown field "requires"; did you mean',
        ),
        ({"platforms": ["gk"]}, 'a.yaml, platforms[0]: unknown platform "gk"; did you mean "gke"?'),
        ({"pod": {"spec": {}}}, "a.yaml, pod.spec.containers: must be a list of containers"),
        ({"facts": ["gone.yaml"]}, "gone.yaml: there is no such file or folder"),
        ({"catalog": [{"models": 5}]}, "a.yaml, catalog: "),
        ({"pod": None, "review": "gone.json"}, "gone.json: there is no such file or folder"),
        ({"operation": "UPDATE", "oldPod": {"spec": 5}}, "a.yaml, oldPod.spec: must be a map"),
    ],
)
def test_what_a_case_names_wrongly_is_told(tmp_path: Path, change: dict[str, Any], wanted: str) -> None:
    """With file and path; the other cases are run."""
    found = run([str(write(tmp_path, a=case(**change), b=case()))], DEFAULTS)
    assert results(found) == {"b": "passed"}
    assert [wanted in str(error) for error in found.errors] == [True], found.errors


def test_a_mistake_in_a_shared_file_is_told_once(tmp_path: Path) -> None:
    """However many cases name it."""
    write(tmp_path, a=[case(policies=["p.yaml"])] * 3, p={**LIMIT, "spec": {"mode": "Enforced"}})
    found = run([str(tmp_path)], DEFAULTS)
    assert len(found.errors) == 1


def test_unreadable_yaml_hides_no_other_file(tmp_path: Path) -> None:
    """A tab, a key twice: told with the line."""
    write(tmp_path, a="why: w\n\tpod: {}\n", b=case(), c="why: a\nwhy: b\n")
    found = run([str(tmp_path)], DEFAULTS)
    assert [("line 2" in str(error)) for error in found.errors] == [True, True]
    assert results(found) == {"b": "passed"}


def test_nothing_to_test_is_bad_input(tmp_path: Path) -> None:
    """An empty folder, and one of objects only: CI must not be green by a misspelt path."""
    (only,) = run([str(tmp_path)], DEFAULTS).errors
    assert "no .yaml" in only.message
    (only,) = run([str(write(tmp_path, p=LIMIT))], DEFAULTS).errors
    assert "has no test case" in only.message
    assert [isinstance(one, InputError) for one in files([str(tmp_path / "x.yaml")])] == [False]
    assert "no such file" in str(run([str(tmp_path / "x.yaml")], DEFAULTS).errors[0])


def test_only_empty_expectations_are_filled_in(tmp_path: Path) -> None:
    """A wrong one is somebody's word: it is written only by an explicit wish."""
    wrong = case(expect={"violations": ["BERTH-112"]})
    write(tmp_path, empty=case(expect={}), wrong=wrong, right=case())
    found = run([str(tmp_path)], DEFAULTS, "empty")
    assert results(found) == {"empty": "written", "right": "passed", "wrong": "failed"}
    assert yaml.safe_load((tmp_path / "wrong.yaml").read_text()) == wrong
    assert results(run([str(tmp_path)], DEFAULTS)) == {"empty": "passed", "right": "passed", "wrong": "failed"}
    right = (tmp_path / "right.yaml").read_bytes()
    assert results(run([str(tmp_path)], DEFAULTS, "all")) == {"empty": "passed", "right": "passed", "wrong": "written"}
    assert results(run([str(tmp_path)], DEFAULTS)) == {"empty": "passed", "right": "passed", "wrong": "passed"}
    assert (tmp_path / "right.yaml").read_bytes() == right


def test_what_a_case_leaves_out_is_given(tmp_path: Path) -> None:
    """Its own word comes first."""
    write(tmp_path, own=case(policies=[]), left={key: value for key, value in case().items() if key != "policies"})
    found = run([str(tmp_path)], {**DEFAULTS, "policies": [LIMIT]})
    assert results(found) == {"left": "passed", "own": "failed"}


def test_all_that_the_results_rest_on_is_known(tmp_path: Path) -> None:
    """So that a change of it is noticed: the cases, and what they name."""
    write(
        tmp_path,
        cases__a=case(policies=["../p.yaml"], facts=["../facts"]),
        p=LIMIT,
        facts__f={"apiVersion": "v1", "kind": "List", "items": []},
    )
    found = run([str(tmp_path / "cases")], DEFAULTS)
    assert found.errors == []
    assert set(found.seen) == {str(tmp_path / name) for name in ("cases", "p.yaml", "facts")}


def test_a_mig_slice_of_nothing_is_no_crash(tmp_path: Path) -> None:
    """Pods of every odd form are decided, or told as bad input."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "eight", "nvidia.com/mig-1g.10gb": -1, "": None}}}
    pods = [
        {"spec": {"containers": [container]}},
        {"spec": {"containers": [{}]}},
        {"metadata": {"labels": {}}, "spec": {"containers": [container] * 2}},
    ]
    found = run([str(write(tmp_path, a=[case(pod=pod) for pod in pods]))], DEFAULTS)
    assert len(found.tested) + len(found.errors) == len(pods)


DENIED = golden.load(golden.CASES / "tolerations" / "forbidden.yaml")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def shuffled(value: Any, random: Random) -> Any:
    """The same with its keys in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], random) for key in random.sample(list(value), len(value))}
    return [shuffled(one, random) for one in value] if isinstance(value, list) else value


@given(value=JSON, random=st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: Any, random: Random) -> None:
    """Nothing is shown of two outcomes that are the same data."""
    assert differences({"edits": [value]}, {"edits": [shuffled(value, random)]}) == []


@given(one=JSON, other=JSON)
def test_what_differs_is_shown(one: Any, other: Any) -> None:
    """There is a line of either side wherever the data differ, 1 and true among them, and none elsewhere."""
    lines = differences({"edits": [one, "end"]}, {"edits": [other, "end"]})
    same = type_and_value(one) == type_and_value(other)
    assert (lines == []) == same
    assert same or any(line.startswith(("-", "+")) and not line.startswith(("---", "+++")) for line in lines)


def type_and_value(value: Any) -> Any:
    """A value that is equal only where types are."""
    if isinstance(value, dict):
        return {key: type_and_value(item) for key, item in value.items()}
    return [type_and_value(item) for item in value] if isinstance(value, list) else (type(value), value)


@pytest.mark.parametrize("empty", [{}, {"edits": []}, {"unmatched": False, "uncounted": 0}])
def test_empty_parts_are_none(empty: dict[str, Any]) -> None:
    """An author may write them: that nothing is edited is an expectation too."""
    assert differences(empty, {}) == []
    assert differences(empty, {"patch": []}) == []
    assert differences(empty, {"unjudged": True}) != []


def test_a_code_stands_for_its_sentence() -> None:
    """In its place only; another code, or one too many, is shown beside the whole sentence that came."""
    found = read_request(DENIED.read, Worlds()).decide().outcome
    (sentence,) = found["violations"]
    assert isinstance(sentence, Sentence)
    assert differences({**found, "violations": [sentence.code]}, found) == []
    assert differences({**found, "violations": [str(sentence)]}, found) == []
    wrong = differences({**found, "violations": ["BERTH-999"]}, found)
    assert [line for line in wrong if line.startswith("-") and "BERTH-999" in line]
    assert any(line.startswith("+") and "BERTH-131: " in line for line in wrong) == (sentence.code == "BERTH-131")
    assert differences({**found, "violations": [sentence.code, sentence.code]}, found) != []
    assert differences({**found, "violations": [str(sentence)[:20]]}, found) != []


ODD = ["n", "1e3", "0o7", "12:30", "~", "1_000", ".5", "yes", 1, None, True]
"""Words that YAML or kubectl takes for something else where they stand without quotes."""
FOUND = {"edits": [{"op": "add", "path": "/spec/x", "value": {"y": ODD}, "rule": "r", "by": "p"}], "remarks": ["BERTH-1: \x1b é"]}
EMPTY = st.sampled_from(
    ["expect: {}", "expect:", "expect: {}  # none yet", "expect: null", "expect:\n  edits: []\n  remarks: [a]", '"expect": {}']
)
BEFORE = st.lists(st.sampled_from(["why: w", "# a comment", "", "pod: {a: [1, 2]}", "text: |\n  expect: {}\n", "é: ü"]), max_size=4)
AFTER = st.lists(st.sampled_from(["user: alice", "# at the margin", "", "groups:\n  - a"]), max_size=3)
TEXT = st.tuples(BEFORE, EMPTY, AFTER)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(TEXT, min_size=1, max_size=3), end=st.sampled_from(["\n", "\r\n"]), number=st.integers(0, 2), mark=st.booleans())
def test_only_the_expectation_changes(tmp_path: Path, parts: list[Any], end: str, number: int, *, mark: bool) -> None:
    """Of any document of a file, wherever the key stands: it reads back as what came, and every other key and comment is as it was."""
    number %= len(parts)
    whole = "\n---\n".join("\n".join((*unique(before), expect, *unique(after))) for before, expect, after in parts) + "\n"
    file = tmp_path / "c.yaml"
    file.write_text(("\ufeff" if mark else "") + whole.replace("\n", end), encoding="utf-8", newline="")
    before, errors = read_documents([str(file)])
    assert errors == []
    comments = [line for line in whole.splitlines() if line.startswith("#")]
    write_expectation(before[number], FOUND)
    after, errors = read_documents([str(file)])
    assert errors == []
    assert [one.value for one in after] == [{**one.value, **({"expect": FOUND} if at == number else {})} for at, one in enumerate(before)]
    text = file.read_text(encoding="utf-8-sig")
    assert [line for line in text.splitlines() if line.startswith("#")] == comments
    written = file.read_bytes()
    write_expectation(after[number], FOUND)
    assert "none yet" in text or file.read_bytes() == written


def unique(lines: list[str]) -> list[str]:
    """No key twice."""
    return [line for at, line in enumerate(lines) if line.startswith("#") or line not in lines[:at]]


def test_flow_style_has_no_place_for_it(tmp_path: Path) -> None:
    """JSON and a map on one line are left as they are, with advice."""
    file = tmp_path / "c.yaml"
    file.write_text('{"why": "w", "expect": {}}')
    (document,), _ = read_documents([str(file)])
    with pytest.raises(InputError, match="write the case as block YAML"):
        write_expectation(document, FOUND)
    assert file.read_text() == '{"why": "w", "expect": {}}'


def test_nothing_is_written_as_nothing() -> None:
    """An outcome without parts is an empty map, which YAML's nothing is not."""
    assert format_outcome({}) == "expect: {}"
