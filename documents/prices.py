"""Read a file of prices: instance type -> USD an hour of the machine, or model -> USD an hour of one device."""

from __future__ import annotations

from collections.abc import Mapping

from catalog import Catalog
from catalog.nearest import hint
from documents.files import read_documents
from kube.tree import kind_of
from policies.document import Document


def read_prices(path: str, catalog: Catalog) -> Mapping[str, float]:
    """Return the prices of a file, one map of names and numbers.

    Raises InputError for the first name that is no machine and no model of the catalog, and for what is no price.
    """
    found, errors = read_documents([path])
    if errors:
        raise errors[0]
    prices: dict[str, float] = {}
    for document in found:
        prices |= _prices(document, catalog)
    return prices


def _prices(document: Document, catalog: Catalog) -> dict[str, float]:
    if not isinstance(document.value, dict):
        raise document.error((), f"must be names with prices, such as p5.48xlarge: 55.04; found {kind_of(document.value)}")
    known = {*(machine.type for machine in catalog.machines if machine.type), *catalog.model_names}
    prices = {}
    for name, usd in document.value.items():
        if name not in known:
            raise document.error(
                (name,), f'"{name}" is neither an instance type nor a model{hint(name, sorted(known))}; berth gpus lists them'
            )
        if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 < usd < float("inf"):
            raise document.error((name,), f"must be USD per hour, a number above 0; found {kind_of(usd)}")
        prices[name] = float(usd)
    return prices
