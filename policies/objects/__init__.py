"""The three kinds of object as a table, and what is derived from it: the strict parser, the JSON schema, the
CRDs, the reference page.

``definition`` is the table, of the shapes in ``catalog.shapes`` and ``field_types``; ``parts`` and ``validation`` hold what its
rows share. ``parse`` reads documents and objects. ``json_schema``, ``crd`` with
``crd_schema``, and ``reference`` render the table; ``wording`` puts a field into words.
"""
