"""Compare the machines and prices of the catalog with the tables of clouds, autoscalers and SDKs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.catalog.compare.modules import Module
from tests.catalog.compare.rows import Comparison, Rows

Raw = dict[str, Any]
"""The catalog as YAML has it."""
KARPENTER_AWS, KARPENTER_AWS_PAGES = "github.com/aws/karpenter-provider-aws", "github.com/aws/karpenter-provider-aws/website"
KARPENTER_AZURE, SKEWER = "github.com/Azure/karpenter-provider-azure", "github.com/Azure/skewer"
AUTOSCALER = "k8s.io/autoscaler/cluster-autoscaler"
EC2, SAGEMAKER = "github.com/aws/aws-sdk-go-v2/service/ec2", "github.com/aws/aws-sdk-go-v2/service/sagemaker"
_AWS_TYPE = re.compile(r"(?:p|gr?|dl)\d[a-z0-9-]*\.[a-z0-9-]+")
"""Instance types of the families that have GPUs or Gaudi."""
_NOT_GPUS = re.compile(r"g2\.|dl2q\.")
"""g2: gone since 2018; dl2q: Qualcomm's accelerators."""
_AZURE_TYPE = re.compile(r"Standard_N[CDVG]\w+")
REGIONS = ("eastus", "eastus2")
"""The regions whose prices the catalog has, the first that has one."""
_LABEL = "karpenter.k8s.aws/instance-"
_ENTRY = r'\n\t"([^"]+)":\s+(?:\w+)?\{(.*?)\n\t\},'
"""An entry of a map of structs in generated Go."""


def machines_of(raw: Raw, cloud: str) -> dict[str, Raw]:
    """Return the machines of a cloud that have an instance type, by it."""
    return {machine["type"]: machine for machine in raw["machines"] if machine["cloud"] == cloud and machine["type"]}


def _go_fields(body: str) -> dict[str, str]:
    return {key: value.strip('"') for key, value in re.findall(r'(\w+):\s+("[^"]*"|[\w.]+)', body)}


def _is_gpu_type(name: str) -> bool:
    return bool(_AWS_TYPE.fullmatch(name)) and not _NOT_GPUS.match(name)


def ec2_types(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare the types of AWS with EC2's InstanceType."""
    types = re.findall(r'InstanceType = "([a-z0-9-]+\.[a-z0-9-]+)"', module.text("types/enums.go"))
    theirs: Rows = {name: {} for name in types if _is_gpu_type(name)}
    yield Comparison(section="machines", source=source, ours=machines_of(raw, "aws"), theirs=theirs, complete=True, lists=True)


def hyperpod_types(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare which types HyperPod makes with SageMaker's ClusterInstanceType."""
    made = set(re.findall(r'ClusterInstanceType = "ml\.([^"]+)"', module.text("types/enums.go")))
    ours = machines_of(raw, "aws")
    yield Comparison(
        section="machines",
        source=source,
        ours={name: {"hyperpod": "hyperpod" not in machine.get("notOn", ())} for name, machine in ours.items()},
        theirs={name: {"hyperpod": name in made} for name in {*ours, *filter(_is_gpu_type, made)}},
        lists=True,
    )


def karpenter_aws(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare prices, pods, EFA, products and compute capabilities with Karpenter's generated tables."""
    ours = machines_of(raw, "aws")
    gpus = {gpu["model"]: gpu for gpu in raw["gpus"]}
    regions = re.split(r'\n\t"([a-z0-9-]+)": \{', module.text("*/pricing/zz_generated.pricing_aws.go"))
    prices = dict(re.findall(r'"([a-z0-9.-]+)": ([0-9.]+)', regions[regions.index("us-east-1") + 1]))
    usd: Rows = {name: {"usdPerHour": float(prices[name])} for name in prices if _is_gpu_type(name)}
    yield Comparison(section="machines", source=source, ours=ours, theirs=usd, lists=True)
    limits = {name: {"pods": _pods(body)} for name, body in re.findall(_ENTRY, module.text("*/zz_generated.vpclimits.go"), re.DOTALL)}
    yield Comparison(section="machines", source=source, ours=ours, theirs={name: limits[name] for name in limits if _is_gpu_type(name)})
    efa = {name: int(body) for name, body in re.findall(r'\n\t"([^"]+)": \{\n\t\tCount: (\d+)', module.text("*/*_efa_metadata.go"))}
    yield Comparison(
        section="machines",
        source=source,
        ours={name: {"efa": machine.get("network", {}).get("vpc.amazonaws.com/efa", 0)} for name, machine in ours.items()},
        theirs={name: {"efa": count} for name, count in efa.items()},
    )
    theirs = {name: _devices(body) for name, body in re.findall(_ENTRY, module.text("*/*_gpu_metadata.go"), re.DOTALL)}
    yield Comparison(
        section="machines",
        source=source,
        ours={name: _published(machine, gpus[machine["model"]], theirs.get(name, {})) for name, machine in ours.items()},
        theirs=theirs,
        lists=True,
    )


def _pods(limits: str) -> int:
    """Return the pods that Karpenter counts by addresses of the default network card (pkg/providers/instancetype/types.go)."""
    numbers = {name: int(value) for name, value in re.findall(r"(\w+):\s+(\d+)", limits.partition("NetworkCards")[0])}
    cards = re.findall(r"MaximumNetworkInterfaces:\s+(\d+),\s+NetworkCardIndex:\s+(\d+)", limits)
    default = re.search(r"DefaultNetworkCardIndex:\s+(\d+)", limits)
    interfaces = {index: int(most) for most, index in cards}.get(default[1] if default else "0", numbers["Interface"])
    return interfaces * (numbers["IPv4PerInterface"] - 1) + 2


def _devices(body: str) -> dict[str, object]:
    products = set(re.findall(r'"productName":\s+\{StringValue: strPtr\("([^"]+)"\)', body))
    capabilities = set(re.findall(r'"cudaComputeCapability":\s+\{VersionValue: strPtr\("([^"]+)"\)', body))
    count = re.search(r"\n\t\tCount:\s+(\d+)", "\n" + body)
    return {
        "count": int(count[1]) if count else None,
        "product": ", ".join(sorted(product.replace(" ", "-") for product in products)) or None,
        "computeCapability": ", ".join(sorted(capability.removesuffix(".0") for capability in capabilities)) or None,
    }


def _published(machine: Raw, gpu: Raw, theirs: dict[str, object]) -> dict[str, object]:
    """Return the fields of ``_devices``; of several products the one that is published, if it is among them."""
    product = theirs.get("product")
    return {
        "count": machine["count"],
        "product": product if product in gpu.get("products", ()) else ", ".join(gpu.get("products", ())),
        "computeCapability": gpu.get("computeCapability"),
    }


def karpenter_aws_pages(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare the labels and amounts of machines with the page that Karpenter generates of them."""
    theirs: dict[str, dict[str, object]] = {}
    row: dict[str, str] = {}
    pages: dict[str, dict[str, str]] = {}
    for line in module.text("content/en/preview/reference/instance-types.md").splitlines():
        if heading := re.match(r"### `([^`]+)`", line):
            row = pages.setdefault(heading[1], {})
        elif cell := re.match(r"\s*\|([^|]+)\|([^|]*)\|", line):
            row[cell[1].strip()] = cell[2].strip()
    for name, page in pages.items():
        if _is_gpu_type(name):
            theirs[name] = {
                "vcpus": int(page[f"{_LABEL}cpu"]),
                "memoryMiB": int(page[f"{_LABEL}memory"]),
                "arch": page["kubernetes.io/arch"],
                "pods": int(page["pods"]),
                "gpuName": page.get(f"{_LABEL}gpu-name"),
                "gpuMemory": page.get(f"{_LABEL}gpu-memory"),
                "efa": int(page.get("vpc.amazonaws.com/efa", 0)),
            }
    yield Comparison(section="machines", source=source, ours=_labelled(machines_of(raw, "aws")), theirs=theirs, lists=True)


def _labelled(machines: dict[str, Raw]) -> Rows:
    return {
        name: {
            **machine,
            "gpuName": machine.get("attributes", {}).get("gpuName"),
            "gpuMemory": str(machine.get("attributes", {}).get("memoryMiB")),
            "efa": machine.get("network", {}).get("vpc.amazonaws.com/efa", 0),
        }
        for name, machine in machines.items()
    }


def autoscaler(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare CPUs, memory, counts and GKE's prices with Cluster Autoscaler's tables."""
    for cloud, pattern, wanted in (
        ("aws", "*aws/ec2_instance_types.go", _is_gpu_type),
        ("azure", "*azure/azure_instance_types.go", _is_azure),
    ):
        theirs: dict[str, dict[str, object]] = {}
        for name, body in re.findall(_ENTRY, module.text(pattern), re.DOTALL):
            fields = _go_fields(body)
            if wanted(name):
                gpus = int(fields.get("GPU", "0"))
                theirs[name] = {
                    "vcpus": int(fields["VCPU"]),
                    "memoryMiB": int(fields["MemoryMb"]),
                    "arch": fields.get("Architecture"),
                    "count": gpus or None,
                }
        yield Comparison(section="machines", source=source, ours=machines_of(raw, cloud), theirs=theirs, lists=True)
    text = module.text("*gce/gce_price_info.go")
    prices = re.findall(r'"([a-z0-9-]+)":\s+([0-9.]+)', text[text.index("instancePrices = ") : text.index("preemptiblePrices = ")])
    ours = machines_of(raw, "gcp")
    theirs = {name: {"usdPerHour": float(usd)} for name, usd in prices if re.match(r"(?:a[2-9]x?|g[2-9])-", name)}
    yield Comparison(section="machines", source=source, ours=ours, theirs=theirs, lists=True)


def _is_azure(name: str) -> bool:
    return bool(_AZURE_TYPE.fullmatch(name))


def karpenter_azure(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare the sizes of Azure and their prices with Karpenter's tables."""
    ours = machines_of(raw, "azure")
    supported = yaml.safe_load(module.text("pkg/utils/supported-gpus.yaml"))
    names = {name.lower(): name for name in ours}
    theirs: dict[str, dict[str, object]] = {names.get(size, size): {"karpenter-azure": True} for size in supported}
    theirs |= {name: {"karpenter-azure": False} for name in ours if name.lower() not in supported}
    counted = {name: {"karpenter-azure": "karpenter-azure" not in machine.get("notOn", ())} for name, machine in ours.items()}
    yield Comparison(section="machines", source=source, ours=counted, theirs=theirs, lists=True)
    regions = re.split(r'initialOnDemandPrices\["([a-z0-9]+)"\] = ', module.text("*/zz_generated.pricing.go"))
    tables = {
        region: {name: float(usd) for name, usd in re.findall(r'"(Standard_N[CDV][^"]+)":\s*([0-9.]+)', text)}
        for region, text in zip(regions[1::2], regions[2::2], strict=True)
    }
    known = {name for table in tables.values() for name in table}
    prices = {
        name: {"usdPerHour": next((tables[region][name] for region in REGIONS if name in tables.get(region, {})), None)} for name in known
    }
    yield Comparison(section="machines", source=source, ours=ours, theirs=prices, lists=True)


def skewer(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare ``skuGpuName`` with what the library that Karpenter uses reads in the names of sizes.

    A name that it does not read shows no GPU; one that the catalog marks ``optional`` is written by newer versions only.
    """
    text = module.text("vmsize.go")
    pattern = re.search(r"skuSizeScheme = regexp\.MustCompile\(\s*`([^`]+)`", text)
    assert pattern is not None, "vmsize.go has no skuSizeScheme any more"
    scheme = re.compile(pattern[1])
    ours: dict[str, dict[str, object]] = {}
    theirs: dict[str, dict[str, object]] = {}
    for name, machine in machines_of(raw, "azure").items():
        parts = scheme.match(name.removeprefix("Standard_"))
        read = (parts[7] or "").removeprefix("xl_") or None if parts else None
        written = machine.get("attributes", {}).get("skuGpuName")
        if read is None and "skuGpuName" in machine.get("optional", ()):
            read = written
        ours[name], theirs[name] = {"skuGpuName": str(written)}, {"skuGpuName": str(read)}
    yield Comparison(section="machines", source=source, ours=ours, theirs=theirs)
