"""The manifests of ``tests/kinds``, and those that the API server may ask advice on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from catalog import Workload
from documents.yaml_reader import one_value
from policies.document import Document
from policies.workloads.pods import Around, Owner, Templated, pods_of
from policies.workloads.templates import workload_of
from tests.support.calls.expected_calls import NOTHING, wanted
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
KINDS = Path(__file__).parents[2] / "kinds"


@cache
def kind_cases() -> tuple[tuple[Path, int, Raw], ...]:
    """Return every case with its file and its place in it. libyaml reads them ten times as fast as ``yaml.safe_load``."""
    files = sorted(KINDS.glob("*.yaml"))
    return tuple((path, number, case) for path in files for number, case in enumerate(yaml.load(path.read_text(), yaml.CSafeLoader)))


def manifests() -> Iterator[tuple[Workload, Raw]]:
    """Of every kind that is in a namespace and is served."""
    for _, _, case in kind_cases():
        value: Raw = case["manifest"]
        workload = workload_of(catalog(), value["apiVersion"], value["kind"])
        if workload is not None and not workload.cluster and value["apiVersion"] in workload.api_version:
            yield workload, value


FOUND = list(manifests())


def calls(workload: Workload, value: Raw) -> frozenset[str]:
    """The webhook of the kind, where a pod of it is judged."""
    owner = Owner(api_version=value["apiVersion"], kind=value["kind"], name="w", namespace="n", workload=workload)
    pods = pods_of(Document(file="f", value=value), owner, catalog(), Around(texts=one_value))
    name = "advise.operators" if workload.places else "advise.workloads"
    return frozenset({name}) if any(isinstance(pod, Templated) and wanted(pod.pod) for pod in pods) else NOTHING
