"""Parse catalog data into a ``Catalog``.

``catalog`` lays the files over each other, assembles the whole and checks the sections against each other. ``records`` reads them by
their shapes: those of ``devices`` and ``kinds`` (of workloads) among them, which ``fields`` derives from the classes of the catalog.
"""

from catalog.parse.catalog import CatalogError as CatalogError
from catalog.parse.catalog import from_mappings as from_mappings
