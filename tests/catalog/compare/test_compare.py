"""The comparison of the catalog with its sources, on sources of a few lines."""

from __future__ import annotations

import datetime
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from documents.files import SHIPPED_CATALOG
from tests.catalog.compare import __main__ as program
from tests.catalog.compare import devices, machines, workloads
from tests.catalog.compare.modules import Module, NoModuleError, download
from tests.catalog.compare.rows import Comparison, Deliberate, Difference, undeclared

MACHINE = {"cloud": "aws", "type": "p5.48xlarge", "count": 8, "pods": 100, "model": "H100-80GB", "source": "karpenter-aws"}
GPU = {"model": "H100-80GB", "vendor": "nvidia", "computeCapability": "9.0", "products": ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe"]}
LIMITS = """
	"p5.48xlarge": {
		Interface:               64,
		IPv4PerInterface:        50,
		DefaultNetworkCardIndex: 0,
		NetworkCards: []NetworkCard{
			{
				MaximumNetworkInterfaces: 2,
				NetworkCardIndex:         0,
			},
			{
				MaximumNetworkInterfaces: 4,
				NetworkCardIndex:         1,
			},
		},
	},
"""


DEVICES = """
	"p5.48xlarge": {
		Count: 8,
		"productName": {StringValue: strPtr("NVIDIA H100 80GB HBM3")},
	},
"""


def a_module(folder: Path, **files: str) -> Module:
    """A module of these files, whose names have ``__`` for a slash and ``DOT`` for a dot."""
    for name, text in files.items():
        file = folder / name.replace("__", "/").replace("DOT", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Module("example.org/m", "v1", folder)


def said(*comparisons: Comparison) -> list[str]:
    return [str(difference) for comparison in comparisons for difference in comparison.differences()]


def test_each_kind_of_difference_is_told() -> None:
    """A row of the source alone is missing, a row of ours alone is extra, a field is told with both values."""
    comparison = Comparison(
        section="machines",
        source="m@v1",
        ours={"a": {"count": 1}, "b": {"count": 2}},
        theirs={"b": {"count": 3}, "c": {"count": 4}},
        complete=True,
        lists=True,
    )
    assert said(comparison) == [
        "missing  machines c: in m@v1 alone",
        "extra    machines a: in the catalog alone",
        "differs  machines b count: catalog 2, m@v1 3",
    ]


def test_a_source_that_knows_no_value_says_nothing_of_it() -> None:
    """None in a source is unknown; a source that has not all rows makes none extra."""
    comparison = Comparison(section="s", source="m", ours={"a": {"x": 1}, "b": {}}, theirs={"a": {"x": None}})
    assert said(comparison) == []


def test_a_declared_difference_is_not_told_and_an_unneeded_declaration_is() -> None:
    """A declaration names rows by a glob, and a field and a source if only these are meant."""
    found = [Difference(kind="differs", section="s", row=row, source="m@v1", field="x", ours=1, theirs=2) for row in ("a1", "b1")]
    meant = Deliberate(section="s", row="a*", field="x", source="m", reason="")
    unneeded = [Deliberate(section="s", row="b*", field="y", reason=""), Deliberate(section="t", row="*", reason="")]
    assert undeclared(found, [meant, *unneeded]) == ([found[1]], unneeded)


def test_pods_are_counted_by_the_addresses_of_the_default_network_card(tmp_path: Path) -> None:
    """2 interfaces of 50 addresses are 100 pods, whatever other cards have; a price and EFA are read beside."""
    module = a_module(
        tmp_path,
        pkg__pricing__zz_generatedDOTpricing_awsDOTgo='\n\t"us-east-1": {\n"p5.48xlarge": 55.04, "m5.large": 0.1, "p9.large": 1.5}',
        pkg__zz_generatedDOTvpclimitsDOTgo=LIMITS,
        pkg__d__zz_generated_efa_metadataDOTgo='\n\t"p5.48xlarge": {\n\t\tCount: 32,',
        pkg__d__zz_generated_gpu_metadataDOTgo=DEVICES,
    )
    raw = {"machines": [{**MACHINE, "usdPerHour": 50.0}], "gpus": [{**GPU, "computeCapability": "9.0"}]}
    assert said(*machines.karpenter_aws(raw, module, "m")) == [
        "missing  machines p9.large: in m alone",
        "differs  machines p5.48xlarge usdPerHour: catalog 50.0, m 55.04",
        "differs  machines p5.48xlarge efa: catalog 0, m 32",
    ]


def test_types_of_sdks_are_compared(tmp_path: Path) -> None:
    """EC2 has every type; HyperPod makes those that SageMaker lists."""
    ec2 = a_module(tmp_path, types__enumsDOTgo='InstanceType = "p6.large"\nInstanceType = "m5.large"\nInstanceType = "g2.large"\n')
    assert said(*machines.ec2_types({"machines": [MACHINE]}, ec2, "m")) == [
        "missing  machines p6.large: in m alone",
        "extra    machines p5.48xlarge: in the catalog alone",
    ]
    sagemaker = a_module(tmp_path, types__enumsDOTgo='ClusterInstanceType = "ml.m5.large"\n')
    assert said(*machines.hyperpod_types({"machines": [MACHINE]}, sagemaker, "m")) == [
        "differs  machines p5.48xlarge hyperpod: catalog True, m False"
    ]


def test_mig_counts_are_compared_by_profile(tmp_path: Path) -> None:
    """A profile is right if some GPU has that count of it alone; mixes say nothing."""
    configs = {
        "a": [{"mig-devices": {"1g.5gb": 6}}],
        "b": [{"mig-devices": {"9g.9gb": 1}}],
        "c": [{"mig-devices": {"1g.5gb": 1, "2g.10gb": 1}}],
    }
    module = a_module(tmp_path, **{"config-defaultDOTyaml": yaml.safe_dump({"mig-configs": configs})})
    raw = {"migSets": {"40gb": {"profiles": {"1g.5gb": 7, "2g.10gb": 3}}}}
    assert said(*devices.mig_profiles(raw, module, "m")) == [
        "missing  migSets 9g.9gb: in m alone",
        "differs  migSets 1g.5gb count: catalog [7], m [6]",
    ]


def a_definition(kind: str, spec: object) -> str:
    """A custom resource definition whose objects have this schema at ``spec``."""
    schema = {"openAPIV3Schema": {"properties": {"spec": spec}}}
    document = {
        "kind": "CustomResourceDefinition",
        "spec": {"group": "example.org", "names": {"kind": kind}, "versions": [{"name": "v1", "schema": schema}]},
    }
    return yaml.safe_dump(document, sort_keys=False)


POD = {"properties": {"containers": {"type": "array", "items": {"properties": {"image": {}, "resources": {}}}}}}
TEMPLATE = {"properties": {"spec": POD}}


def test_kinds_with_pods_are_found_by_their_schema(tmp_path: Path) -> None:
    """A kind with a pod's spec anywhere should be a workload; paths of templates are compared; tests of a project are not read."""
    module = a_module(
        tmp_path,
        crds__aDOTyaml=a_definition("New", {"properties": {"roles": {"items": {"properties": {"template": TEMPLATE}}}}}),
        crds__bDOTyaml=a_definition(
            "Known", {"properties": {"replicas": {"additionalProperties": {"properties": {"template": TEMPLATE}}}}}
        ),
        crds__cDOTyaml=a_definition("Quota", {"properties": {"containers": {"items": {"type": "string"}}}}),
        test__dDOTyaml=a_definition("Fixture", TEMPLATE),
    )
    known = {"name": "Known", "apiVersions": ["example.org/v1"], "templates": ["spec.template"], "source": "s"}
    assert said(*workloads.kinds({"workloads": [known], "between": []}, module, "m")) == [
        "missing  workloads example.org/New: in m alone",
        "differs  workloads example.org/Known templates: catalog spec.template, m spec.replicas.*.template",
    ]


def test_a_module_is_read_from_its_zip_file_as_from_a_folder(tmp_path: Path) -> None:
    """Names in the zip begin with the module and its version; a pattern that nothing matches is an error with both."""
    with zipfile.ZipFile(tmp_path / "v1.zip", "w") as archive:
        archive.writestr("example.org/m@v1/pkg/a.go", "package a")
    module = Module("example.org/m", "v1", tmp_path / "v1.zip")
    assert module.text("pkg/*.go") == "package a"
    with pytest.raises(NoModuleError, match=r"example.org/m@v1 has no file \*.md"):
        module.text("*.md")


def test_a_module_that_the_proxy_does_not_serve_is_told_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that failed to build for its Go version is had; one without a zip file is not; a folder needs no download."""
    answer = (
        '{"Path": "a", "Version": "v1", "Zip": "/a.zip", "Error": "requires go >= 9"}\n{"Path": "b", "Error": "403 Forbidden\\n\\tserver"}'
    )
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, answer, "no network"))
    monkeypatch.setattr("shutil.which", lambda _: "/go")
    modules, failed = download(["a", "b", "c", "d"], {"d": tmp_path})
    assert {path: module.version for path, module in modules.items()} == {"a": "v1", "d": "folder"}
    assert failed == {"b": "403 Forbidden", "c": "no network"}


def test_a_run_without_the_proxy_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, each module with its reason, and what to look at."""
    monkeypatch.setattr(program, "download", lambda paths, _: ({}, dict.fromkeys(paths, "dial tcp: no route to host")))
    assert program.main([]) == 2
    error = capsys.readouterr().err
    assert "not compared: sigs.k8s.io/kueue: dial tcp: no route to host" in error
    assert "is the Go module proxy reachable (GOPROXY)?" in error


def test_rows_carry_a_page_and_a_day() -> None:
    """Every source but general knowledge has a page and the day on which it was read, and no day is to come."""
    raw = yaml.safe_load(SHIPPED_CATALOG.read_text(encoding="utf-8"))
    assert [name for name, entry in raw["sources"].items() if not entry["page"] or (name != "general" and "checked" not in entry)] == []
    days = [checked for _, _, checked in program.rows_with_pages(raw) if checked is not None]
    assert max(days) <= datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days=1)


def test_every_exception_has_a_reason() -> None:
    """The table of exceptions is read whole, and names no row without saying why."""
    settings = yaml.safe_load((program.HERE / "exceptions.yaml").read_text(encoding="utf-8"))
    assert all(Deliberate(**entry).reason for entry in settings["exceptions"])
    assert len(settings["definitions"]) == len(set(settings["definitions"]))
