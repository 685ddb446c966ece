"""Parse catalog data into a ``Catalog``.

``merge`` lays the files over each other, ``reader`` reads typed fields, ``catalog`` assembles the whole with
``devices``, ``kinds`` (of workloads) and ``platforms``, and ``check`` checks the sections against each other.
"""

from catalog.parse.catalog import CatalogError as CatalogError
from catalog.parse.catalog import from_mappings as from_mappings
