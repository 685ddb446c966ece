"""The facts about GPUs, MIG profiles, machines, platforms and workloads: types and look-ups.

The data is ``catalog/catalog.yaml``. ``parse`` reads it, and the files laid over it, into a ``Catalog``, which is
made of ``gpus``, ``platforms``, ``resources`` and ``workload``. ``names`` lists the names in it that policies
may use; ``prices`` has what devices cost, with prices of one's own laid over those of the catalog.
``shapes`` is the parser of all documents: of the catalog, of policies and of policy cases.
"""

from catalog.catalog import LONGEST_NAME, Catalog
from catalog.gpus import Gpu, MachineType, MigProfile, Network
from catalog.platforms import AcceleratorTaint, GraceCap, Operator, Platform, Protection, SharingScheme, Variant
from catalog.resources import Measure, Resource, ResourceKind, ResourcePattern
from catalog.workload import Workload

__all__ = [
    "LONGEST_NAME",
    "AcceleratorTaint",
    "Catalog",
    "Gpu",
    "GraceCap",
    "MachineType",
    "Measure",
    "MigProfile",
    "Network",
    "Operator",
    "Platform",
    "Protection",
    "Resource",
    "ResourceKind",
    "ResourcePattern",
    "SharingScheme",
    "Variant",
    "Workload",
]
