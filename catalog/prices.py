"""What a pod's devices cost an hour: by the node that it runs on, else the least that they cost anywhere that
the catalog knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.catalog import Catalog
from kube.labels import GPU_PRODUCT, INSTANCE_TYPE

PRODUCT_KEYS = (GPU_PRODUCT, "amd.com/gpu.product-name")
"""Labels with a GPU's product, as each vendor's feature discovery writes them."""
MODEL_KEYS = (*PRODUCT_KEYS, "cloud.google.com/gke-accelerator")
"""Labels with the model of a node's GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in USD an hour: of whole machines, and of one device of a model."""

    machines: Mapping[str, tuple[float, int]]
    """Instance type -> (price, devices on it)."""
    models: Mapping[str, float]
    products: Mapping[str, str] = field(default_factory=dict)
    """Value of a vendor's product label -> model."""
    label_keys: tuple[str, ...] = ()
    """Keys of product labels."""

    def of_device(self, labels: Mapping[str, str]) -> float | None:
        """Return the price of one device of a node with these labels; None if it is not known."""
        machine = self.machines.get(labels.get(INSTANCE_TYPE, ""))
        if machine is not None:
            return machine[0] / machine[1]
        for key in self.label_keys:
            if (usd := self.models.get(self.products.get(labels.get(key, ""), ""))) is not None:
                return usd
        return None

    def of_machine(self, name: str, model: str) -> float | None:
        """Return the price of one device of a machine of this instance type, else of this model; None if it is not known."""
        machine = self.machines.get(name)
        return machine[0] / machine[1] if machine is not None else self.models.get(model)


def prices(catalog: Catalog, given: Mapping[str, float] | None = None) -> Prices:
    """Return the catalog's indicative prices with those given over them.

    ``given``: instance type -> USD an hour of the machine, or model -> USD an hour of one device.
    """
    given = given or {}
    machines: dict[str, tuple[float, int]] = {}
    models: dict[str, float] = {}
    for machine in catalog.machines:
        usd = given.get(machine.type or "", machine.usd_per_hour)
        if not usd or not machine.count:
            continue
        if machine.type is not None:
            machines[machine.type] = usd, machine.count
        models[machine.model] = min(usd / machine.count, models.get(machine.model, usd / machine.count))
    models |= {name: usd for name, usd in given.items() if catalog.models(name)}
    products = {product: gpu.model for gpu in catalog.gpus for product in gpu.products}
    return Prices(machines=machines, models=models, products=products, label_keys=PRODUCT_KEYS)
