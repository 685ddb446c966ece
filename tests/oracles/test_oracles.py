"""What Berth answers is as recorded, and a change of any of it is noticed in the layer that it belongs to."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import prometheus_client
import pytest

from cli.output import scan_output
from policies import messages
from policies.engine import evaluate
from telemetry import policy_metrics
from tests.oracles import __main__ as oracles
from tests.oracles import inputs
from tests.oracles.layers import Seen, data_of, rendered_data, values_in
from tests.oracles.reviews import POD, _body, request_of
from tests.support.counts import PROVE, only_in_prove
from webhook.admission import decision_cache, handlers

Plant = Callable[[pytest.MonkeyPatch], None]
REVIEWS, SCAN = "reviews/recorded", "examples/scan_-o_text_--from_cluster.yaml"


def test_all_is_as_recorded() -> None:
    """Nothing is decided or said otherwise than recorded; what is meant to be is accepted: python -m tests.oracles accept."""
    if not PROVE:
        assert oracles.check(inputs.TWINS, 1) == []
        return
    compared = subprocess.run([sys.executable, "-m", "tests.oracles"], cwd=inputs.ROOT, capture_output=True, text=True, check=False)
    assert compared.returncode == 0, compared.stdout + compared.stderr


def reword(patch: pytest.MonkeyPatch) -> None:
    row = messages.TABLE["BERTH-101"]
    patch.setitem(messages.TABLE, row.code, replace(row, templates={**row.templates, "why": "Nobody shares a GPU."}))


def reorder_edits(patch: pytest.MonkeyPatch) -> None:
    def reordered(*asked: Any) -> Any:
        verdict = evaluate(*asked)
        return replace(verdict, edits=verdict.edits[::-1], patch=verdict.patch[::-1])

    patch.setattr(handlers, "evaluate", reordered)


def rename_log_field(patch: pytest.MonkeyPatch) -> None:
    fields = decision_cache.pod_fields
    patch.setattr(
        decision_cache, "pod_fields", lambda *given: {name.replace("pod", "name"): value for name, value in fields(*given).items()}
    )


def swap_columns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scan_output, "HEADS", scan_output.HEADS[::-1])


def rename_label(patch: pytest.MonkeyPatch) -> None:
    def counter(name: str, documentation: str, labels: tuple[str, ...], **more: Any) -> prometheus_client.Counter:
        return prometheus_client.Counter(name, documentation, tuple("act" if label == "rule" else label for label in labels), **more)

    patch.setattr(policy_metrics, "Counter", counter)


@pytest.mark.parametrize(
    ("plant", "name", "layers"),
    [
        pytest.param(reword, REVIEWS, "text", id="a message's wording"),
        pytest.param(reorder_edits, REVIEWS, "data", id="an edit's order"),
        pytest.param(rename_log_field, REVIEWS, "data", id="a log field"),
        pytest.param(swap_columns, SCAN, "data and text", id="a column of scan"),
        pytest.param(rename_label, REVIEWS, "data", id="a metric's label"),
    ],
)
def test_a_planted_change_is_noticed_in_its_layer(plant: Plant, name: str, layers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reworded message differs in the text alone, everything that was decided in the data."""
    before = {name: oracles.digests(name)}
    plant(monkeypatch)
    assert oracles.differences(before, {name: oracles.digests(name)}) == [f"{layers}: {name}"]


def test_a_changed_input_is_told_from_a_changed_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a generator draws otherwise, the difference names the inputs too."""
    name = "berth/version"
    before = {name: oracles.digests(name)}
    monkeypatch.setitem(inputs.oracles(), name, lambda: {"words": ["version"], "files": {"a": ""}, "cluster": None})
    assert oracles.differences(before, {name: oracles.digests(name)}) == [f"inputs: {name}"]


def test_a_damaged_review_leaves_what_it_is_made_of_as_it_was() -> None:
    """Else the inputs would depend on which others the same process has drawn before."""
    random, request = Random(0), request_of({**POD, "metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}]}}, "ml")
    before = copy.deepcopy(request)
    bodies = {_body(random, request) for _ in range(500)}
    assert len(bodies) > 5, "some are damaged"
    assert request == before


def test_what_is_accepted_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``accept`` lists what is new or changed and keeps all else; then nothing differs."""
    monkeypatch.setattr(oracles, "RECORDED", tmp_path / "digests.txt")
    (tmp_path / "digests.txt").write_text("berth/gpus a b c\nberth/version a b c\ngone a b c\n")
    assert oracles.accept(["berth/version"], 1) == ["inputs and data and text: berth/version", "gone: gone"]
    assert oracles.recorded()["berth/gpus"] == ("a", "b", "c")
    assert oracles.check(["berth/version"], 1) == []


@only_in_prove
def test_the_first_difference_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """``show`` compares with the commit that wrote the digests; in ``make test`` only what it prints is tested, just below."""
    assert next(iter(oracles.show("files/crds"))).startswith("files/crds: the same as in ")


def test_a_difference_is_shown_with_its_input() -> None:
    """The first answer that differs, and the review that it answers."""
    value = {"sessions": [{"world": {"policies": []}, "reviews": [["/mutate", "{}"], ["/validate", "[]"]]}]}
    old = [Seen("/mutate", 1, []), Seen("/validate", {"allowed": True}, ["as it is"])]
    new = [old[0], Seen("/validate", {"allowed": False}, ["as it is"])]
    lines = list(oracles._first_difference("reviews/x", value, "abc", old, new))
    assert lines[0] == "reviews/x: 1 of 2 answers differ from abc: 1 in data, 0 in text"
    assert '"/validate",' in "\n".join(lines)
    assert [line for line in lines if line[:2] in ("- ", "+ ")] == ['- "allowed": true', '+ "allowed": false']


def test_the_data_of_a_sentence_are_its_values() -> None:
    """Codes, numbers, names in quotes and paths count; words and their order do not."""
    said = 'BERTH-101: container "c" requests 1 nvidia.com/gpu but its limit is 2; set spec.containers[0].resources'
    other = 'BERTH-101: of nvidia.com/gpu, "c" has 2 as limit, 1 as request; spec.containers[0].resources is wrong.'
    assert values_in(said) == values_in(other) != values_in(said.replace("is 2", "is 3"))
    assert data_of({"text": said, "patch": [{"value": "a b"}]}) == {"text": {"says": values_in(said)}, "patch": [{"value": "a b"}]}


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param("POD  GPUS\na    2\n\nAll is well.\n", [["POD", "GPUS"], ["a", "2"]], id="table"),
        pytest.param("--- a\n+++ b\n-x: the old\n+x: the new\n", ["--- a", "+++ b", "-x: the old", "+x: the new"], id="difference"),
        pytest.param('{"a": "b c", "n": 1}', {"a": {"says": []}, "n": 1}, id="JSON"),
        pytest.param("apiVersion: v1\nkind: Pod\nx: a b\n", [{"apiVersion": "v1", "kind": "Pod", "x": "a b"}], id="manifest"),
        pytest.param("<html><td>3</td><p>4 of them</p></html>", {"cells": ["3"], "values": ["4"]}, id="HTML"),
        pytest.param("A,B,C,D\r\n1,2,3,4\r\n", [["A", "B", "C", "D"], ["1", "2", "3", "4"]], id="CSV"),
    ],
)
def test_the_data_of_rendered_output_are_its_cells(text: str, data: Any) -> None:
    """Tables cell by cell, manifests and differences as they are, sentences by their values."""
    assert rendered_data(text) == data
