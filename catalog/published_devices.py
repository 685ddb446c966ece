"""What a DRA driver publishes of its devices, as attributes and capacities that a claim's selectors can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.gpus import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDevices:
    """The attributes are names without a domain, which is then that of the driver, or qualified ones
    (k8s.io/api/resource/v1 QualifiedName). None: it publishes no such thing."""

    driver: str
    vendor: str
    classes: Mapping[str, str] = field(default_factory=dict)
    """The DeviceClasses that the driver's chart brings -> the type of their devices; "" for any type."""
    model: str | None = None
    """The attribute with the product's name."""
    spaces: bool = False
    """True if the product's name is the vendor's product label with spaces in place of dashes."""
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Model -> further names."""
    family: str | None = None
    """The attribute with the architecture."""
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Family -> the values of that attribute."""
    type: str | None = None
    """The attribute that tells whole devices and parts apart."""
    sharing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sharing -> the values of that attribute."""
    profile: str | None = None
    """The attribute with the MIG profile."""
    memory: str | None = None
    """The capacity with the memory in bytes; of a slice, its own."""

    @property
    def type_key(self) -> str:
        """The qualified name of the attribute ``type``, as DeviceClasses select it; "" if there is none."""
        return "/".join(self.qualified(self.type)) if self.type is not None else ""

    def names(self, gpu: Gpu) -> tuple[str, ...]:
        """Return the names that the driver gives to a model, with dashes if it has ``spaces``; () if none is known."""
        return (*(gpu.products if self.spaces else ()), *self.named.get(gpu.model, ()))

    def qualified(self, name: str) -> tuple[str, str]:
        """Return the domain and the identifier of an attribute or capacity."""
        domain, _, identifier = name.rpartition("/")
        return domain or self.driver, identifier
