"""Reading and laying over catalog data: what is understood, what is rejected, and in which words."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from catalog import Catalog, Resource
from catalog.parse import CatalogError, from_mappings
from documents.files import SHIPPED_CATALOG, CatalogFilesError, read_catalog, read_documents

BASE: dict[str, Any] = read_documents([str(SHIPPED_CATALOG)])[0][0].value
BASE_CATALOG = read_catalog()


def laid(*overlays: dict[str, Any]) -> Catalog:
    return from_mappings(BASE, *copy.deepcopy(overlays))


def faults(overlay: object) -> tuple[str, ...]:
    with pytest.raises(CatalogError) as caught:
        from_mappings(BASE, overlay, names=["mine.yaml"])  # type: ignore[arg-type]
    return caught.value.notes


# --- resources --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "cpx: must have at least one value, found an empty list; write cpx: [1]"),
        ([0], "cpx[0]: must be a whole number, 1 or more, found 0"),
        (["8"], 'cpx[0]: must be a whole number, found the text "8"'),
        (8, "cpx: must be a list, found the number 8"),
        ([True], "cpx[0]: must be a whole number, found the boolean true"),
    ],
)
def test_parts_are_whole_numbers(parts: object, message: str) -> None:
    """At least one each."""
    entry = {"pattern": r"example\.com/(?P<mode>cpx)", "vendor": "amd", "kind": "partition", "parts": {"cpx": parts}}
    assert [message in note for note in faults({"resources": [entry]})] == [True]


# --- machines ---------------------------------------------------------------------------------------------------------


def test_an_instance_type_tells_its_family_category_generation_and_size() -> None:
    """On AWS the name of the type is split as Karpenter splits it, a dash in the family included."""
    by_type = {machine.type: machine for machine in read_catalog().machines}
    attributes = by_type["p6-b200.48xlarge"].attributes
    assert (attributes["family"], attributes["category"], attributes["generation"], attributes["size"]) == ("p6-b200", "p", "6", "48xlarge")
    assert by_type["g4ad.xlarge"].resource == "amd.com/gpu"
    assert by_type["g4ad.xlarge"].attributes["manufacturer"] == "amd"


# --- overlays ---------------------------------------------------------------------------------------------------------


def test_one_line_adds_a_gpu() -> None:
    """A new model is one record; everything shipped stays."""
    new = {"model": "B400", "groups": ["B"], "vendor": "nvidia", "family": "blackwell", "memoryGB": 300, "mig": "278gb"}
    catalog = laid({"gpus": [new]})
    assert len(catalog.gpus) == len(read_catalog().gpus) + 1
    assert catalog.models("B")[0].mig[0].name == "1g.35gb"


def test_a_gpu_brings_its_own_mig_profiles() -> None:
    """Profiles may stand in the record, with usable memory where its mark is verified."""
    record = {"model": "X1", "vendor": "nvidia", "family": "blackwell", "mig": {"1g.9gb": 7, "7g.60gb": 1, "1g.9gb+me": 1}}
    figures = {"usableMiB": {"1g.9gb": 8000}}
    sure = laid({"gpus": [{**record, **figures, "usableMark": "verified"}]}).models("X1")[0].mig
    assert [(profile.name, profile.count, profile.usable_mib) for profile in sure] == [
        ("1g.9gb", 7, 8000),
        ("7g.60gb", 1, None),
        ("1g.9gb+me", 1, None),
    ]
    assert sure[2].resource == "nvidia.com/mig-1g.9gb.me"
    assert sure[2].attribute == "+me"
    assert all(profile.usable_mib is None for profile in laid({"gpus": [{**record, **figures}]}).models("X1")[0].mig)


def test_a_record_is_merged_field_by_field() -> None:
    """A second record of the same name changes what it says, adds to lists, and keeps the rest."""
    t4 = laid({"gpus": [{"model": "T4", "memoryMiB": 15109, "products": ["NVIDIA-T4", "Tesla-T4"]}]}).models("T4")
    assert len(t4) == 1
    assert (t4[0].memory_mib, t4[0].products, t4[0].family) == (15109, ("Tesla-T4", "NVIDIA-T4"), "turing")


def test_a_resource_can_be_renamed() -> None:
    """A cluster that calls a slice nvidia.com/gpu-10gb is understood, and the new name is the one to write."""
    renamed = {"name": "nvidia.com/gpu-10gb", "vendor": "nvidia", "kind": "mig", "profile": "1g.10gb"}
    with_media = {"name": "nvidia.com/gpu-10gb-media", "vendor": "nvidia", "kind": "mig", "profile": "1g.10gb.me"}
    catalog = laid({"resources": [renamed, with_media]})
    assert catalog.resource("nvidia.com/gpu-10gb") == Resource(name="nvidia.com/gpu-10gb", vendor="nvidia", kind="mig", profile="1g.10gb")
    assert catalog.renamed == {"1g.10gb": "nvidia.com/gpu-10gb", "1g.10gb+me": "nvidia.com/gpu-10gb-media"}
    assert read_catalog().renamed == {}


def test_a_literal_name_beats_a_pattern() -> None:
    """A literal in an overlay says more than the shipped pattern that also fits."""
    catalog = laid({"resources": [{"name": "nvidia.com/mig-1g.5gb", "vendor": "nvidia", "kind": "other"}]})
    found = catalog.resource("nvidia.com/mig-1g.5gb")
    assert found is not None
    assert found.kind == "other"


def test_a_name_that_really_exists_is_no_misspelling() -> None:
    """Who says that nvidia.com/gpus is a resource of the cluster is not told that it is misspelt."""
    assert "nvidia.com/gpus" in read_catalog().misspellings
    assert "nvidia.com/gpus" not in laid({"resources": [{"name": "nvidia.com/gpus", "vendor": "nvidia", "kind": "gpu"}]}).misspellings


def test_a_driver_that_nobody_listed_may_make_accelerators() -> None:
    """Only those of otherDrivers are none, and a line laid over adds one."""
    assert [BASE_CATALOG.is_accelerator_driver(driver) for driver in ("gpu.nvidia.com", "gpu.acme.example", "", "dra.net")] == [
        True, True, True, False,
    ]  # fmt: skip
    own = laid({"otherDrivers": [{"driver": "nic.acme.example"}]})
    assert not own.is_accelerator_driver("nic.acme.example")
    assert not own.is_accelerator_driver("compute-domain.nvidia.com")


def test_a_platform_can_be_given_slices_and_durations() -> None:
    """Maps merge key by key, over several layers."""
    catalog = laid(
        {"platforms": {"karpenter-aws": {"slices": ["nvidia.com/mig-1g.10gb"]}}},
        {"platforms": {"karpenter-aws": {"protectDurations": True, "slices": ["nvidia.com/mig-1g.20gb"]}}},
    )
    platform = catalog.platforms["karpenter-aws"]
    assert platform.slices == ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.20gb")
    assert platform.protect_durations
    assert platform.anchor == "karpenter.k8s.aws/instance-family"
    assert not platform.makes_slices


def test_machines_merge_by_cloud_and_type() -> None:
    """A type's price can be changed; a machine without a type is told from others by its model."""
    catalog = laid(
        {
            "machines": [
                {"cloud": "aws", "type": "p4d.24xlarge", "usdPerHour": 20},
                {"cloud": "gcp", "model": "T4", "attributes": {"accelerator": "nvidia-t4-new", "size": 1, "ready": True}},
                {"cloud": "aws", "type": "p9.2xlarge", "model": "T4", "count": 1},
            ]
        }
    )
    assert len(catalog.machines) == len(read_catalog().machines) + 1
    by_type = {machine.type: machine for machine in catalog.machines if machine.cloud == "aws"}
    assert (by_type["p4d.24xlarge"].usd_per_hour, by_type["p4d.24xlarge"].count, by_type["p9.2xlarge"].family) == (20.0, 8, "p9")
    n1 = next(machine for machine in catalog.machines if machine.type is None and machine.model == "T4")
    assert (n1.attributes["accelerator"], n1.attributes["size"], n1.attributes["ready"]) == ("nvidia-t4-new", "1", "true")


def test_taints_are_added_once() -> None:
    """Lists without a name grow by what is new."""
    mine = {"vendor": "nvidia", "key": "dedicated", "value": "gpu", "effect": "NoExecute"}
    catalog = laid({"taints": [mine]}, {"taints": [mine]})
    assert len(catalog.taints) == len(read_catalog().taints) + 1
    assert (catalog.taints[-1].taint.key, catalog.taints[-1].taint.effect) == ("dedicated", "NoExecute")


def test_an_empty_section_says_nothing() -> None:
    """A section left empty in YAML (null) is as if it were not there."""
    assert laid({"gpus": None}) == read_catalog()


# --- what is rejected --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        (
            {"gpus": [{"model": "T4", "memoryGB": "x"}]},
            'mine.yaml: gpus[0].memoryGB: must be a whole number, found the text "x"; write memoryGB: 1',
        ),
        (
            {"gpus": [{"model": "T4", "memoryGB": True}]},
            "mine.yaml: gpus[0].memoryGB: must be a whole number, found the boolean true; write memoryGB: 1",
        ),
        ({"gpus": [{"model": "T4", "memoryGb": 16}]}, 'mine.yaml: gpus[0].memoryGb: unknown field "memoryGb"; did you mean "memoryGB"?'),
        ({"gpus": [{"model": "N", "family": "volta"}]}, "mine.yaml: gpus[0]: vendor is missing; write vendor: VENDOR"),
        ({"gpus": [{"model": "T4", "family": 5}]}, "mine.yaml: gpus[0].family: must be text, found the number 5; write it in quotes"),
        (
            {"gpus": [{"model": "T4", "products": "Tesla-T4"}]},
            'mine.yaml: gpus[0].products: must be a list, found the text "Tesla-T4"; write products: [Tesla-T4]',
        ),
        ({"gpus": [{"model": "T4", "products": [None]}]}, "mine.yaml: gpus[0].products[1]: must be text, found nothing (null); write TEXT"),
        (
            {"gpus": [{"model": "T4", "mark": "sure"}]},
            'mine.yaml: gpus[0].mark: must be one of verified, derived, third-party, unverified, found the text "sure"',
        ),
        ({"gpus": [{"model": "T4", "mig": "40g"}]}, 'mine.yaml: gpus[0].mig: unknown set "40g" of migSets; did you mean "40gb"?'),
        (
            {"gpus": [{"model": "T4", "mig": {"1c.3g.20gb": 1}}]},
            'mine.yaml: gpus[0].mig["1c.3g.20gb"]: the text "1c.3g.20gb" is not a MIG profile such as 1g.10gb or 1g.10gb+me',
        ),
        ({"gpus": [{"model": "T4", "mig": {"1g.5gb": 0}}]}, 'mine.yaml: gpus[0].mig["1g.5gb"]: must be a whole number, 1 or more, found 0'),
        (
            {"gpus": [{"model": "A100-40GB", "usableMiB": {"9g.5gb": 1}}]},
            'mine.yaml: gpus[0].usableMiB["9g.5gb"]: is not a MIG profile of this GPU',
        ),
        ({"gpus": ["T4"]}, 'mine.yaml: gpus[0]: must be a map, found the text "T4"; write {model: TEXT, vendor: VENDOR, family: TEXT}'),
        ({"gpus": {"T4": 1}}, "mine.yaml: gpus: must be a list, found a map; write gpus: [{model: TEXT, vendor: VENDOR, family: TEXT}]"),
        ({"platforms": []}, "mine.yaml: platforms: must be a map, found a list; write platforms: {TEXT: {anchor: TEXT, sharing: SCHEME}}"),
        (
            {"platforms": {"gke": "x"}},
            'mine.yaml: platforms.gke: must be a map, found the text "x"; write gke: {anchor: TEXT, sharing: SCHEME}',
        ),
        ({"gpuz": []}, 'mine.yaml: gpuz: unknown section; did you mean "gpus"?'),
        ([], "mine.yaml: must be a map of sections, found a list; write gpus: [...]"),
        (
            {"machines": [{"cloud": "awz", "type": "a.b", "model": "T4"}]},
            'mine.yaml: machines[0].cloud: unknown cloud "awz"; did you mean "aws"?',
        ),
        (
            {"machines": [{"cloud": "aws", "type": "a.b", "model": "T44"}]},
            'mine.yaml: machines[0].model: unknown GPU model "T44"; did you mean "T4"?',
        ),
        (
            {"machines": [{"cloud": "aws", "type": "p4d.24xlarge", "usdPerHour": "21"}]},
            'mine.yaml: machines[0].usdPerHour: must be a number, found the text "21"; write usdPerHour: 1',
        ),
        (
            {"machines": [{"cloud": "aws", "type": "p4d.24xlarge", "attributes": {"gpuName": []}}]},
            "mine.yaml: machines[0].attributes.gpuName: must be text, found a list; write gpuName: TEXT",
        ),
        (
            {"machines": [{"cloud": "aws", "type": "p4d.24xlarge", "attributes": []}]},
            "mine.yaml: machines[0].attributes: must be a map, found a list; write attributes: {TEXT: TEXT}",
        ),
        (
            {"clouds": {"own": {"type": "("}}},
            'mine.yaml: clouds.own.type: "(" is not a regular expression: missing ), unterminated subpattern at position 0',
        ),
        ({"resources": [{"vendor": "nvidia", "kind": "mig"}]}, "mine.yaml: resources[0]: must have name or pattern; write name: TEXT"),
        (
            {"resources": [{"pattern": "(", "vendor": "v", "kind": "mig"}]},
            'mine.yaml: resources[0].pattern: "(" is not a regular expression: missing ), unterminated subpattern at position 1',
        ),
        (
            {"resources": [{"name": "a/b", "vendor": "v", "kind": "gpus"}]},
            'partition, part, dra, passthrough, other, found the text "gpus"; did you mean "gpu"?',
        ),
        (
            {"platforms": {"gke": {"createsNodes": "yes"}}},
            'mine.yaml: platforms.gke.createsNodes: must be true or false, found the text "yes"; write createsNodes: true',
        ),
        (
            {"platforms": {"gke": {"machineKeys": ["type"]}}},
            'mine.yaml: platforms.gke.machineKeys[3]: must be a list, found the text "type"; write [type]',
        ),
        (
            {"platforms": {"gke": {"capacity": {"spott": {}}}}},
            'platforms.gke.capacity.spott: must be one of spot, on-demand, reserved, found the text "spott"; did you mean "spot"?',
        ),
        (
            {"platforms": {"gke": {"capacity": {"spot": "true"}}}},
            'mine.yaml: platforms.gke.capacity.spot: must be a map, found the text "true"; write spot: {TEXT: TEXT}',
        ),
        (
            {"platforms": {"gke": {"furtherCapacity": {"spot": {"a/b": "true"}}}}},
            "mine.yaml: platforms.gke.furtherCapacity.spot: must be a list, found a map; write spot: [{TEXT: TEXT}]",
        ),
        (
            {"platforms": {"aks": {"furtherCapacity": {"spot": ["x"]}}}},
            'mine.yaml: platforms.aks.furtherCapacity.spot[0]: must be a map, found the text "x"; write {TEXT: TEXT}',
        ),
        (
            {"platforms": {"gke": {"partitionSizes": {"H200": "1g"}}}},
            'mine.yaml: platforms.gke.partitionSizes.H200: must be a list, found the text "1g"; write H200: [1g]',
        ),
        (
            {"platforms": {"gke": {"partitionSizes": {"H2000": []}}}},
            'mine.yaml: platforms.gke.partitionSizes.H2000: unknown GPU model "H2000"; did you mean "H200"?',
        ),
        (
            {"platforms": {"gke": {"partitionSizes": {"H200": ["3g.70gb"]}}}},
            'platforms.gke.partitionSizes.H200: unknown profile "3g.70gb"; did you mean "3g.71gb"?',
        ),
        (
            {"machines": [{"cloud": "aws", "type": "g4dn.xlarge", "model": "T4", "count": 1, "uncounted": ["karpenter-aw"]}]},
            'mine.yaml: machines[0].uncounted[0]: unknown platform "karpenter-aw"; did you mean "karpenter-aws"?',
        ),
        (
            {"machines": [{"cloud": "aws", "type": "g4dn.xlarge", "model": "T4", "count": 1, "optional": ["gpuNam"]}]},
            'machines: g4dn.xlarge.optional: unknown attribute "gpuNam"; did you mean "gpuName"?',
        ),
        ({"platforms": {"gke": {"sharing": "gkee"}}}, 'platforms.gke.sharing: unknown scheme "gkee"; did you mean "gke"?'),
        ({"platforms": {"gke": {"labels": {"a/b": "typ"}}}}, 'platforms.gke: label a/b: unknown attribute "typ"; did you mean "type"?'),
        (
            {"platforms": {"gke": {"machineKeys": [["cloud.google.com/gke-accel"]]}}},
            'cloud.google.com/gke-accel is not one of its labels; did you mean "cloud.google.com/gke-accelerator"?',
        ),
        (
            {"schemes": {"gke": {"variants": [{"sharing": "MIG", "vendor": "v", "labels": {"a": "b"}}]}}},
            'labels.a: must be a list of the values that the label may have, null for absent, found the text "b"; write a: [null]',
        ),
        (
            {"schemes": {"gke": {"exclude": {"MIG": [{"key": "a", "operator": "Is"}]}}}},
            'mine.yaml: schemes.gke.exclude.MIG[0].operator: must be one of In, NotIn, Exists, DoesNotExist, found the text "Is"',
        ),
        (
            {"schemes": {"gke": {"only": {"MIG": {}}}}},
            "mine.yaml: schemes.gke.only.MIG: must be a list, found a map; write MIG: [{key: TEXT, operator: In}]",
        ),
        (
            {"schemes": {"gke": {"only": {"MIG": ["x"]}}}},
            'mine.yaml: schemes.gke.only.MIG[2]: must be a map, found the text "x"; write {key: TEXT, operator: In}',
        ),
        (
            {"schemes": {"gke": {"only": {"MIG": [{"keys": 1}]}}}},
            'mine.yaml: schemes.gke.only.MIG[0].keys: unknown field "keys"; did you mean "key"?',
        ),
        (
            {"workloads": [{"name": "W", "owners": ["Job"]}]},
            'mine.yaml: workloads[0].owners[0]: the text "Job" is not an API group and kind such as batch/Job',
        ),
        ({"between": [{"group": "x.io", "kind": "Part"}]}, "mine.yaml: between[0]: resource is missing; write resource: TEXT"),
        (
            {"between": [{"group": "x.io", "kind": "Part", "resource": "Parts"}]},
            'mine.yaml: between[0].resource: the text "Parts" is not the kind as the API\'s paths have it, such as revisions',
        ),
        ({"graceCaps": [{"name": "C", "seconds": -1}]}, "mine.yaml: graceCaps[0].seconds: must be a whole number, 0 or more, found -1"),
        (
            {"draDrivers": [{"driver": "x", "vendor": "nvidia", "model": "a b"}]},
            'mine.yaml: draDrivers[0].model: the text "a b" is not the name of an attribute or capacity such as productName',
        ),
        (
            {"draDrivers": [{"driver": "x", "vendor": "nvidia", "families": {"hopper": "Hopper"}}]},
            'mine.yaml: draDrivers[0].families.hopper: must be a list, found the text "Hopper"; write hopper: [Hopper]',
        ),
        (
            {"draDrivers": [{"driver": "x", "vendor": "nvidia", "sharing": {"Shared": ["a"]}}]},
            'mine.yaml: draDrivers[0].sharing.Shared: must be one of Exclusive, MIG, TimeSliced, found the text "Shared"',
        ),
        ({"otherDrivers": [{"vendor": "x"}]}, "mine.yaml: otherDrivers[0]: driver is missing; write driver: TEXT"),
        (
            {"otherDrivers": [{"driver": "gpu.amd.com"}]},
            "otherDrivers: gpu.amd.com is one of draDrivers: its devices are accelerators; remove one of the two",
        ),
        (
            {"graceCaps": [{"name": "C", "seconds": 1, "platforms": ["gkee"]}]},
            'mine.yaml: graceCaps[0].platforms[0]: unknown platform "gkee"; did you mean "gke"?',
        ),
        ({"gpus": [{"model": "A100", "vendor": "nvidia", "family": "ampere"}]}, 'gpus: "A100" is the name of a model and of a group'),
        (
            {"gpus": [{"model": "X", "vendor": "nvidea", "family": "ampere"}]},
            'mine.yaml: gpus[0].vendor: unknown vendor "nvidea"; did you mean "nvidia"?',
        ),
    ],
)
def test_a_mistake_is_told_with_its_file_path_and_what_was_wanted(overlay: object, message: str) -> None:
    """Each mistake says the file, the place in it, what was wanted and the nearest right name."""
    notes = faults(overlay)
    assert any(message in note for note in notes), "\n".join(notes)


WORKLOAD: dict[str, Any] = {"name": "W", "apiVersions": ["x.io/v1"], "resource": "ws", "templates": ["spec.template"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"resource": None},
            'workloads: W: templates need a resource, the kind as the API\'s paths have it (deployments), got the text ""',
        ),
        ({"resource": "ws/status"}, "templates need a resource"),
        ({"resource": "*"}, "templates need a resource"),
        ({"apiVersions": []}, "workloads: W: templates need apiVersions"),
        ({"apiVersions": ["x.io"]}, 'workloads: W: expected an apiVersion such as apps/v1, got the text "x.io"'),
        (
            {"templates": ["spec.a.*.b[*].c[*].template"]},
            "W: expected a path of names such as spec.template, with two * or [*] at most",
        ),
        (
            {"templates": ["spec.a[*][*].template"]},
            'workloads: W: expected a path of names such as spec.template, with two * or [*] at most, got the text "spec.a[*][*].template"',
        ),
        ({"templates": [], "pods": [{"at": "spec"}]}, "W: pods[0] has no containers"),
        ({"templates": [], "pods": [{"at": "spec", "spec": "."}], "resource": ""}, "W: pods need a resource"),
        (
            {"templates": [], "pods": [{"at": "spec", "containers": "main=a.?b"}]},
            'workloads: W: expected a path of names such as spec.template, with two * or [*] at most, got the text "spec.a.?b"',
        ),
        (
            {"templates": [], "pods": [{"at": "spec", "spek": "."}]},
            'mine.yaml: workloads[0].pods[0].spek: unknown field "spek"; did you mean "spec"?',
        ),
        ({"templates": [], "pods": [{"at": "spec", "spec": ".", "base": [{"kinds": ["A"], "name": "a"}]}]}, "an API group and kind"),
        (
            {"templates": ["spec.a[0].template"]},
            'workloads: W: expected a path of names such as spec.template, with two * or [*] at most, got the text "spec.a[0].template"',
        ),
        (
            {"templates": ["spec.a.?b"]},
            'workloads: W: expected a path of names such as spec.template, with two * or [*] at most, got the text "spec.a.?b"',
        ),
        ({"templates": [""]}, 'workloads: W: expected a path of names such as spec.template, with two * or [*] at most, got the text ""'),
        ({"finished": ["status.conditions[*].type=Failed"]}, "W: expected a path of names, and a value if only that one counts"),
        (
            {"finished": ["=Failed"]},
            'expected a path of names, and a value if only that one counts, such as status.phase=Failed, got the text "=Failed"',
        ),
    ],
)
def test_a_workload_that_no_webhook_could_be_made_for(change: dict[str, Any], message: str) -> None:
    """Templates are of use only where the API server can be told which objects have them, and where in them."""
    assert message in " ".join(faults({"workloads": [{**WORKLOAD, **change}]}))


@pytest.mark.parametrize(
    "change", [{}, {"apiVersions": ["v1"]}, {"templates": ["spec.a[*].b.template", "spec.c.*.template"]}, {"templates": ["spec.a[*].b[*]"]}]
)
def test_a_workload_of_one_s_own(change: dict[str, Any]) -> None:
    """Of any group, with stars where its templates are many; without templates it needs no resource."""
    own = laid({"workloads": [{**WORKLOAD, **change}, {"name": "V", "labels": ["v"]}]})
    assert [workload.resource for workload in own.workloads[-2:]] == ["ws", ""]


def test_all_mistakes_are_told_at_once() -> None:
    """One run tells every mistake of every layer, each with its own file."""
    with pytest.raises(CatalogError) as caught:
        from_mappings(BASE, {"gpus": [{"model": "T4", "memoryGB": "x"}], "sources": {"me": "seen"}}, {"gpuz": [], "taint": []})
    assert sorted(caught.value.notes) == [
        'overlay 1: gpus[0].memoryGB: must be a whole number, found the text "x"; write memoryGB: 1',
        'overlay 2: gpuz: unknown section; did you mean "gpus"?',
        'overlay 2: taint: unknown section; did you mean "taints"?',
    ]
    assert str(caught.value).count("\n") == 2


def test_two_records_of_one_model_in_a_file_are_denied() -> None:
    """The shipped file itself may not say a model twice."""
    doubled = {**BASE, "gpus": [*BASE["gpus"], BASE["gpus"][0]]}
    with pytest.raises(CatalogError, match='gpus: "T4" is the name of several models'):
        from_mappings(doubled)


def test_a_value_that_is_too_long_is_cut() -> None:
    """A message shows at most sixty characters of a wrong value."""
    long = faults({"gpus": [{"model": "T4", "memoryGB": "x" * 200}]})[0]
    assert f'found the text "{"x" * 57}..."; write' in long


# --- files ------------------------------------------------------------------------------------------------------------


def test_overlay_files_are_read_and_named_in_errors(tmp_path: Any) -> None:
    """Files are laid over in the order given, several documents in one too; a mistake names the file."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("gpus: [{model: T4, memoryMiB: 1}]\n---\ngpus: [{model: T4, memoryMiB: 2}]\n")
    bad.write_text("gpus: [{model: T4, memoryMiB: no-number}]\n")
    assert read_catalog([good]).models("T4")[0].memory_mib == 2
    with pytest.raises(CatalogFilesError, match=r"bad\.yaml: gpus\[0\]\.memoryMiB: must be a whole number"):
        read_catalog([good, bad])


def test_a_mistake_between_files_names_the_overlay(tmp_path: Any) -> None:
    """A name that leads nowhere is told with the file that was laid over, since the shipped data alone has no such fault."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("platforms: {gke: {sharing: none-such}}\n")
    with pytest.raises(CatalogFilesError) as caught:
        read_catalog([mine])
    assert [error.file for error in caught.value.errors] == [str(mine)]


@pytest.mark.parametrize("text", [None, "", "gpus: [\n"], ids=["missing", "empty", "broken"])
def test_files_that_cannot_be_read_are_told(tmp_path: Any, text: str | None) -> None:
    """A missing, empty or broken file is an error with its name, not an empty overlay."""
    path = tmp_path / "mine.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CatalogFilesError, match=r"mine\.yaml"):
        read_catalog([path])
