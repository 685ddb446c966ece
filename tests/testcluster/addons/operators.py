"""The custom resource definitions of operators that make pods, as their authors publish them in Go modules.

``operators/go.mod`` pins the modules; each is fetched for its files alone, and checked against ``operators/go.sum``. Not to be had this way
are those of NIM, Dynamo, AIBrix, KAITO, Seldon, Volcano, Dask, HyperPod and Kubeflow's notebooks.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from catalog import Catalog
from tests.testcluster import go_build
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.programs import MODULES, NoProgram

MODULE = MODULES / "operators"
FOLDERS = {
    "github.com/argoproj/argo-rollouts": "manifests/crds",
    "github.com/argoproj/argo-workflows/v3": "manifests/base/crds/full",
    "github.com/kserve/kserve": "config/crd/full",
    "github.com/kubeflow/mpi-operator": "manifests/base",
    "github.com/kubeflow/spark-operator/v2": "config/crd/bases",
    "github.com/kubeflow/trainer/v2": "manifests/base/crds",
    "github.com/kubeflow/training-operator": "manifests/base/crds",
    "github.com/openkruise/kruise": "config/crd/bases",
    "github.com/ray-project/kuberay/ray-operator": "config/crd/bases",
    "github.com/tektoncd/pipeline": "config/300-crds",
    "knative.dev/serving": "config/core/300-resources",
    "sigs.k8s.io/jobset": "config/components/crd/bases",
    "sigs.k8s.io/lws": "config/crd/bases",
}
"""module -> where its definitions are, a file each"""
_REQUIRED = re.compile(r"^\t(\S+) (v\S+)$", re.MULTILINE)
_GROUP, _PLURAL = (re.compile(rf"^ +{key}: (\S+)$", re.MULTILINE) for key in ("group", "plural"))


class Definition(NamedTuple):
    """A file, and what it defines; it is not parsed, for some are of a megabyte."""

    file: Path
    group: str
    plural: str

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"


def definitions(catalog: Catalog, largest: int) -> list[Definition]:
    """Of every kind that the catalog knows, one for each name, in files of at most so many bytes. Raises NoProgram, and BuildFailed."""
    kinds = {(version.rpartition("/")[0], workload.resource) for workload in catalog.workloads for version in workload.api_version}
    found: dict[str, Definition] = {}
    for one in _published(largest):
        if (one.group, one.plural) in kinds:
            found.setdefault(one.name, one)
    return list(found.values())


def _published(largest: int) -> Iterator[Definition]:
    for module, version in _REQUIRED.findall((MODULE / "go.mod").read_text()):
        for file in sorted((_fetched(f"{module}@{version}", FOLDERS[module]) / FOLDERS[module]).rglob("*.yaml")):
            text = file.read_text() if file.stat().st_size <= largest else ""
            group, plural = _GROUP.search(text), _PLURAL.search(text)
            if group is not None and plural is not None:
                yield Definition(file, group[1], plural[1])


def _fetched(module: str, folder: str) -> Path:
    try:
        return go_build.files(MODULE, module, [folder])
    except go_build.NoGo as error:
        raise NoProgram(f"the definitions of {module} are fetched with Go, and {error}") from None


def define(cluster: Cluster, defined: list[Definition], *, schemas: bool = True) -> None:
    """Served from now on. No operator runs, so none converts: what is stored is what was sent. Without ``schemas`` any fields are taken: of
    the largest ones the API server reads for seconds."""
    for definition in defined:
        (value,) = (value for value in yaml.load_all(definition.file.read_text(), yaml.CSafeLoader) if value)
        value["spec"].pop("conversion", None)
        for version in value["spec"]["versions"] if not schemas else ():
            version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        reply = cluster.api.apply(value)
        assert reply.ok, reply.message
    names = {definition.name for definition in defined}
    command = cluster.kubectl("api-resources", "--cached=false", "-o", "name")
    cluster.wait_for(lambda: names.issubset(printed(command).split()), "every definition to be served")


def printed(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
