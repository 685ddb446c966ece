"""Compute the share of a GPU that each MIG slice takes."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from catalog.gpus import Gpu


def slice_shares(gpus: Iterable[Gpu]) -> dict[str, tuple[Fraction, Fraction]]:
    """Return MIG profile as in a resource name -> (least, most) share of a GPU, by compute or memory, over
    the models that have it."""
    found: dict[str, list[Fraction]] = {}
    for gpu in gpus:
        compute, memory = max((p.compute for p in gpu.mig), default=1), max((p.memory_gb for p in gpu.mig), default=1)
        for profile in gpu.mig:
            part = max(Fraction(profile.compute, compute), Fraction(profile.memory_gb, memory))
            found.setdefault(profile.name.replace("+", "."), []).append(part)
    return {name: (min(parts), max(parts)) for name, parts in found.items()}
