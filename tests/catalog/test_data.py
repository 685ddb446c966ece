"""The shipped catalog holds to its own rules, and to the figures it was copied from."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from catalog import Gpu, MigProfile
from catalog.parse.catalog import SOURCES
from catalog.parse.records import MARKS
from documents.files import SHIPPED_CATALOG, read_catalog, read_documents

RAW: dict[str, Any] = read_documents([str(SHIPPED_CATALOG)])[0][0].value
CATALOG = read_catalog()
SLICED = [gpu for gpu in CATALOG.gpus if gpu.mig]
QUALIFIED = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""A qualified name of the API server, as label keys, resource names and taint keys must be."""
LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def entries() -> Iterator[tuple[str, dict[str, Any]]]:
    for section in RAW.keys() - {SOURCES}:
        records = RAW[section]
        yield from ((f"{section}.{name}", entry) for name, entry in (records.items() if isinstance(records, dict) else enumerate(records)))


def test_every_entry_has_a_source_and_a_mark() -> None:
    """Each fact says where it is from, by a source that is listed, and how far to trust it."""
    assert [where for where, entry in entries() if entry.get("mark") not in MARKS] == []
    assert [where for where, entry in entries() if not set(entry.get("source", "none").split()) <= set(RAW["sources"])] == []


def test_every_source_is_used() -> None:
    """A source that no entry names has no business in the list."""
    used = {word for _, entry in entries() for word in entry["source"].split()}
    assert set(RAW["sources"]) == used


# --- MIG --------------------------------------------------------------------------------------------------------------


def rounded(value: float) -> int:
    """As Go's math.Round for positive numbers: halves go up, where Python's round() goes to even."""
    return math.floor(value + 0.5)


def eighths(profile: MigProfile, gpu: Gpu) -> int:
    """Memory slices of eight that a profile takes, by the pattern of GPUs with seven, four or two compute slots."""
    slots = max(one.compute for one in gpu.mig)
    if slots < 7:
        return 8 * profile.compute // slots
    single = min(one.memory_gb for one in gpu.mig)
    doubled = profile.compute == 1 and profile.memory_gb > single
    return {1: 2 if doubled else 1, 2: 2, 3: 4, 4: 4, 7: 8}[profile.compute]


@pytest.mark.parametrize("gpu", SLICED, ids=lambda gpu: gpu.model)
def test_mig_names_follow_the_formula(gpu: Gpu) -> None:
    """The GB in every profile name is floor(share of the total + 0.5), as go-nvlib computes it."""
    total = max(profile.memory_gb for profile in gpu.mig)
    assert total == gpu.memory_gb
    for profile in gpu.mig:
        assert profile.memory_gb == rounded(eighths(profile, gpu) / 8 * total), profile.name
        assert profile.name.startswith(f"{profile.compute}g.{profile.memory_gb}gb")


@pytest.mark.parametrize("gpu", [gpu for gpu in SLICED if gpu.memory_mib], ids=lambda gpu: gpu.model)
def test_mig_totals_are_the_memory_rounded_up(gpu: Gpu) -> None:
    """The total in names is the driver's memory, rounded up to whole GiB."""
    assert gpu.memory_mib is not None
    assert max(profile.memory_gb for profile in gpu.mig) == math.ceil(gpu.memory_mib / 1024)


@pytest.mark.parametrize(
    ("model", "right", "wrong"),
    [
        ("H200", "3g.71gb", "3g.70gb"),
        ("B200", "1g.23gb", "1g.22gb"),
        ("GB200-186GB", "2g.47gb", "2g.46gb"),
        ("B300", "3g.135gb", "3g.134gb"),
    ],
)
def test_mig_names_are_not_those_of_pythons_round(model: str, right: str, wrong: str) -> None:
    """Halves are rounded up: 3g.71gb exists on H200, 3g.70gb does not."""
    names = [profile.name for profile in CATALOG.models(model)[0].mig]
    assert right in names
    assert wrong not in names


@pytest.mark.parametrize("gpu", [gpu for gpu in SLICED if max(one.compute for one in gpu.mig) == 7], ids=lambda gpu: gpu.model)
def test_seven_slot_gpus_have_the_seven_slot_counts(gpu: Gpu) -> None:
    """1g x7, 1g+me x1, doubled 1g x4, 2g x3, 3g x2, 4g x1, 7g x1."""
    assert [profile.count for profile in gpu.mig] == [7, 1, 4, 3, 2, 1, 1]
    assert [profile.attribute for profile in gpu.mig] == [None, "+me", None, None, None, None, None]


def test_usable_memory_is_there_only_where_verified() -> None:
    """Only the two A100 have figures read in a primary source; the third-party ones stay out of decisions."""
    assert {gpu.model for gpu in SLICED for profile in gpu.mig if profile.usable_mib is not None} == {"A100-40GB", "A100-80GB"}
    assert "usableMiB" in next(gpu for gpu in RAW["gpus"] if gpu["model"] == "H200")


@pytest.mark.parametrize("gpu", SLICED, ids=lambda gpu: gpu.model)
def test_mig_resources_are_names_that_the_api_server_takes_and_the_catalog_reads(gpu: Gpu) -> None:
    """Each profile's resource name is a qualified name and is read back as that slice."""
    for profile in gpu.mig:
        assert QUALIFIED.fullmatch(profile.resource)
        found = CATALOG.resource(profile.resource)
        assert found is not None
        assert (found.kind, found.profile) == ("mig", profile.name.replace("+", "."))


# --- names ------------------------------------------------------------------------------------------------------------


def test_every_machine_is_of_a_known_model() -> None:
    """Model, cloud, count and resource of each machine are known; no type is there twice."""
    types = [(machine.cloud, machine.type) for machine in CATALOG.machines if machine.type]
    assert len(types) == len(set(types))
    for machine in CATALOG.machines:
        assert len(CATALOG.models(machine.model)) == 1
        assert machine.resource == CATALOG.whole[CATALOG.models(machine.model)[0].vendor]
        assert machine.family
        assert machine.count is None if machine.type is None else machine.count


def test_machines_have_room_for_pods_within_reason() -> None:
    """A p5.48xlarge has 192 CPUs, 2 TiB and 100 pods; each machine's CPUs, memory per CPU and pods are within reason."""
    by_type = {machine.type: machine for machine in CATALOG.machines}
    p5 = by_type["p5.48xlarge"]
    assert (p5.vcpus, p5.memory_mib, p5.pods, p5.arch) == (192, 2 << 20, 100, "amd64")
    for machine in CATALOG.machines:
        if machine.vcpus and machine.memory_mib:
            assert 1.5 < machine.memory_mib / 1024 / machine.vcpus < 32, machine.type
        assert machine.pods is None or machine.cloud == "aws"


def test_arm64_hosts_are_those_of_grace_and_graviton() -> None:
    """Whether a host is of arm64 follows from its GPU's model."""
    arm64 = {"T4G", "GB200-186GB", "GB300"}
    assert {machine.model for machine in CATALOG.machines if machine.arch == "arm64"} == arm64
    assert {machine.model for machine in CATALOG.machines if machine.arch != "arm64"}.isdisjoint(arm64)


def test_prices_are_those_of_the_tables() -> None:
    """A p4d costs 21.96 an hour, and all prices of one GPU are within reason."""
    by_type = {machine.type: machine for machine in CATALOG.machines}
    assert by_type["p4d.24xlarge"].usd_per_hour == pytest.approx(21.957642)
    assert all(0.2 < machine.usd_per_hour / machine.count < 30 for machine in CATALOG.machines if machine.usd_per_hour and machine.count)


def test_labels_can_hold_every_value() -> None:
    """Product names, also with what sharing appends, and machine attributes are label values of at most 63 characters."""
    for gpu in CATALOG.gpus:
        assert all(LABEL_VALUE.fullmatch(product) for product in gpu.products), gpu.model
        assert all(LABEL_VALUE.fullmatch(f"{product}-SHARED") for product in gpu.products), gpu.model
    for machine in CATALOG.machines:
        assert all(LABEL_VALUE.fullmatch(value) for value in (machine.type or "", *machine.attributes.values())), machine.type


def test_only_two_workstation_products_are_too_long_for_a_slice() -> None:
    """Under the single strategy the label holds product and profile; two workstation cards' names leave no room for all."""
    over = {
        product
        for gpu in SLICED
        for product in gpu.products
        for profile in gpu.mig
        if len(f"{product}-MIG-{profile.name.replace('+', '.')}") > 63
    }
    assert over == {
        "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition",
        "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition",
    }


def test_keys_are_qualified_names() -> None:
    """Label keys, resource names, misspellings too (the API server stores them), and taint keys are well formed."""
    keys = [key for platform in CATALOG.platforms.values() for key in (platform.anchor, *platform.labels, *platform.after_boot)]
    keys += [key for platform in CATALOG.other_platforms.values() for key in platform]
    keys += [key for scheme in CATALOG.schemes.values() for variant in scheme.variants for key in variant.labels]
    keys += [*CATALOG.misspellings, *CATALOG.misspellings.values(), *CATALOG.whole.values()]
    keys += [taint.taint.key for taint in (*CATALOG.taints, *CATALOG.spot_taints, *CATALOG.arch_taints)]
    keys += [protection.key for protection in CATALOG.protections]
    assert [key for key in keys if not QUALIFIED.fullmatch(key)] == []


def test_misspellings_are_no_accelerators_and_their_corrections_are() -> None:
    """A wrong name is unknown, its right one known."""
    assert [wrong for wrong in CATALOG.misspellings if CATALOG.resource(wrong) is not None] == []
    assert [right for right in CATALOG.misspellings.values() if CATALOG.resource(right) is None] == []


def test_patterns_are_anchored() -> None:
    """A resource pattern fits a whole name or nothing, also when it is used with search."""
    for known in CATALOG.resources:
        assert known.pattern.pattern.startswith("^(?:")
        assert known.pattern.pattern.endswith(")$")
    assert not any(
        known.pattern.search(f"x{known.name}") or known.pattern.search(f"{known.name}x") for known in CATALOG.resources if known.name
    )


def test_what_is_no_accelerator_is_not_read_as_one() -> None:
    """The names listed as looking like accelerators are none."""
    assert [name for name in CATALOG.not_accelerators if CATALOG.resource(name) is not None] == []


# --- platforms --------------------------------------------------------------------------------------------------------


def test_the_platforms_of_the_command_line_are_all_there() -> None:
    """Each platform that --platforms takes is described, and those that make nodes know GFD's labels only after boot."""
    assert list(CATALOG.platforms) == ["karpenter-aws", "eks-auto", "eks-nodegroup", "hyperpod", "gke", "aks", "karpenter-azure", "gfd"]
    for platform in CATALOG.platforms.values():
        assert platform.creates_nodes == ("nvidia.com/gpu.product" in platform.after_boot)
        assert platform.creates_nodes == (platform.cloud is not None)
        assert set(platform.labels).isdisjoint(platform.after_boot)


def test_anchors_tell_platforms_apart() -> None:
    """No platform's anchor is a label of another."""
    anchors = [platform.anchor for platform in CATALOG.platforms.values()]
    assert len(set(anchors)) == len(anchors)
    for platform in CATALOG.platforms.values():
        others = {*platform.labels, *platform.capacity_keys} & set(anchors) - {platform.anchor}
        assert others == set()


def test_karpenter_makes_no_slices() -> None:
    """No node is ever made for a slice by Karpenter or EKS Auto."""
    assert {name for name, platform in CATALOG.platforms.items() if not platform.makes_slices} == {
        "karpenter-aws",
        "eks-auto",
        "karpenter-azure",
    }


def test_every_capacity_label_is_of_a_listed_key() -> None:
    """What tells capacity types apart is written only with keys that the platform lists for it."""
    for platform in CATALOG.platforms.values():
        assert {key for _, labels, _ in platform.capacities() for key in labels} == set(platform.capacity_keys)
    assert set(CATALOG.platforms["gfd"].capacity) == {"reserved"}


def test_what_excludes_a_way_of_sharing_excludes_it() -> None:
    """The expressions against sharing and slices do not match the labels of such nodes."""
    gfd = CATALOG.schemes["gfd"]
    assert [(e.key, e.operator, e.values) for e in gfd.exclude["TimeSliced"]] == [
        ("nvidia.com/gpu.sharing-strategy", "NotIn", ("time-slicing", "mps"))
    ]
    assert [(e.key, e.operator) for e in gfd.of(["nvidia"]).exclude["MIG"]] == [("nvidia.com/gpu.slices.gi", "DoesNotExist")]
    assert [(e.key, e.operator) for e in gfd.of(["amd"]).exclude["MIG"]] == [("amd.com/compute-memory-partition", "NotIn")]
    assert CATALOG.schemes["gke"].slice_key == "cloud.google.com/gke-gpu-partition-size"
    amd = {(variant.resource, variant.sharing) for variant in gfd.variants if variant.vendor == "amd"}
    assert {(None, "Exclusive"), (None, "MIG"), ("amd.com/spx_nps1", "MIG"), ("amd.com/cpx_nps8", "MIG")} < amd
    assert len(amd) == 22


def test_vendors_of_taints_and_drivers_are_vendors_of_resources() -> None:
    """A taint or a DRA driver is for a vendor that some resource name has."""
    vendors = {known.vendor for known in CATALOG.resources}
    assert {taint.vendor for taint in (*CATALOG.taints, *CATALOG.spot_taints, *CATALOG.arch_taints)} <= vendors
    assert set(CATALOG.dra_drivers.values()) <= vendors


def test_what_drivers_publish_names_what_is_known() -> None:
    """Families and models of the driver's vendor; each model of NVIDIA's with a product label has a name, and classes are of one driver."""
    for driver, devices in CATALOG.published.items():
        own = [gpu for gpu in CATALOG.gpus if gpu.vendor == devices.vendor]
        assert set(devices.families) <= {gpu.family for gpu in own}, driver
        assert set(devices.named) <= {gpu.model for gpu in own}, driver
        assert set(devices.sharing) <= {"Exclusive", "MIG"}, driver
    nvidia = CATALOG.published["gpu.nvidia.com"]
    assert {gpu.family for gpu in CATALOG.gpus if gpu.vendor == "nvidia"} <= set(nvidia.families)
    assert nvidia.names(CATALOG.models("L4")[0]) == ("NVIDIA-L4",)
    assert CATALOG.published["gpu.amd.com"].names(CATALOG.models("MI300X")[0])[0] == "AMD_Instinct_MI300X_OAM"
    classes = [name for devices in CATALOG.published.values() for name in devices.classes]
    assert len(set(classes)) == len(classes)
    assert (CATALOG.driver("mig.nvidia.com"), CATALOG.driver("acme")) == ("gpu.nvidia.com", "acme")


def test_drivers_of_other_devices_are_none_of_accelerators() -> None:
    """Networks, compute domains and processors; none of them is listed twice over."""
    assert {"dra.net", "compute-domain.nvidia.com", "sriovnetwork.k8snetworkplumbingwg.io", "dra.cpu"} < CATALOG.other_drivers
    assert not CATALOG.other_drivers & set(CATALOG.dra_drivers)


def test_what_is_never_tolerated_is_no_accelerator_taint() -> None:
    """The two lists of taints do not meet."""
    assert not {taint.taint.key for taint in (*CATALOG.taints, *CATALOG.spot_taints, *CATALOG.arch_taints)} & set(CATALOG.never_tolerate)


def test_workloads_have_well_formed_signatures() -> None:
    """Names are unique, and so are kinds in their groups; owners have a kind; what runs for long is known as such."""
    names = [workload.name for workload in CATALOG.workloads]
    assert len(set(names)) == len(names)
    assert {"Job", "CronJob", "Deployment", "StatefulSet", "DaemonSet", "PyTorchJob", "RayCluster", "JobSet", "Notebook"} <= set(names)
    kinds = [(version, workload.kind) for workload in CATALOG.workloads for version in workload.api_version]
    assert len(set(kinds)) == len(kinds)
    for workload in CATALOG.workloads:
        assert all(kind for _, kind in workload.owners), workload.name
    long = {workload.name for workload in CATALOG.workloads if workload.service}
    assert {"Deployment", "ReplicaSet", "StatefulSet", "Notebook", "InferenceService", "RayService", "LeaderWorkerSet"} <= long
    assert long.isdisjoint({"Job", "CronJob", "Workflow", "TrainJob", "SparkApplication", "TaskRun", "PyTorchJob", "DaemonSet"})


def test_every_workload_that_describes_pods_has_its_resource() -> None:
    """As its CRD is named: ``<resource>.<group>``. Two kinds may share a word, in different groups."""
    resources = {workload.kind: workload.resource for workload in CATALOG.workloads}
    assert all(resources.values())
    plural = {kind: f"{kind.lower()}{'es' if kind.endswith(('s', 'x')) else 's'}" for kind in resources}
    assert {kind: resource for kind, resource in resources.items() if resource != plural[kind]} == {}


def test_known_caps_of_grace_are_listed() -> None:
    """Spot notices and the autoscaler's limit, in seconds."""
    assert {(cap.seconds, cap.capacity) for cap in CATALOG.grace_caps} == {
        (120, "spot"),
        (15, "spot"),
        (30, "spot"),
        (600, None),
        (3600, None),
    }
