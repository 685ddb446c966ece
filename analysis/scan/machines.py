"""The model of GPU on a node, by its labels: instance type, the cloud's own accelerator label, or the vendor's product label."""

from __future__ import annotations

from collections.abc import Mapping

from catalog import Catalog, Gpu, MachineType
from catalog.prices import PRODUCT_KEYS
from kube.labels import INSTANCE_TYPE


def split_product(label: str) -> tuple[str, str, bool]:
    """Return the product in a vendor's label, the MIG profile of its slices ("" if it has none), and whether it is shared."""
    sliced = label.removesuffix("-SHARED")
    product, _, profile = sliced.partition("-MIG-")
    return product, profile, sliced != label


class Machines:
    """The catalog's machines and products, prepared for look-ups."""

    def __init__(self, catalog: Catalog) -> None:
        self._gpus = {gpu.model: gpu for gpu in catalog.gpus}
        self._types = catalog.types
        self._products = {product: gpu for gpu in catalog.gpus for product in gpu.products}
        accelerators: dict[str, set[str]] = {}
        for machine in catalog.machines:
            if name := machine.attributes.get("accelerator"):
                accelerators.setdefault(name, set()).add(machine.model)
        self._accelerators = {name: next(iter(models)) for name, models in accelerators.items() if len(models) == 1}
        keys = (key for platform in catalog.platforms.values() for key, attribute in platform.labels.items() if attribute == "accelerator")
        self._accelerator_keys = tuple(dict.fromkeys(keys))

    def gpu(self, labels: Mapping[str, str]) -> Gpu | None:
        """Return the model on a node with these labels, by the first of them that tells."""
        return self.of_type(labels) or self._of_accelerator(labels) or self.of_product(labels)

    def of_type(self, labels: Mapping[str, str]) -> Gpu | None:
        """Return the model by the instance type alone."""
        machine = self.machine(labels)
        return None if machine is None else self._gpus.get(machine.model)

    def machine(self, labels: Mapping[str, str]) -> MachineType | None:
        """Return the machine by the instance type."""
        return self._types.get(labels.get(INSTANCE_TYPE, ""))

    def of_product(self, labels: Mapping[str, str]) -> Gpu | None:
        """Return the model by the vendor's product label, without the endings for slices and sharing."""
        for key in PRODUCT_KEYS:
            if (gpu := self._products.get(split_product(labels.get(key, ""))[0])) is not None:
                return gpu
        return None

    def _of_accelerator(self, labels: Mapping[str, str]) -> Gpu | None:
        names = (labels[key] for key in self._accelerator_keys if key in labels)
        return next((self._gpus.get(self._accelerators.get(name, "")) for name in names), None)
