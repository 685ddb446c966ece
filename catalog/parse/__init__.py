"""Parse catalog data into a ``Catalog``.

``merge`` lays the files over each other, and ``records`` reads the result by the shapes of its sections: those of
``devices``, ``kinds`` (of workloads) and ``platforms``, which ``fields`` derives from the classes of the catalog. ``catalog``
assembles the whole and checks the sections against each other.
"""

from catalog.parse.catalog import CatalogError as CatalogError
from catalog.parse.catalog import from_mappings as from_mappings
