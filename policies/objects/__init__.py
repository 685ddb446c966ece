"""The three kinds of object as a table, and what is derived from it: the strict parser, the JSON schema, the
CRDs, the reference page.

``definition`` is the table, ``field_types`` its vocabulary; ``parts`` and ``validation`` hold what its rows
share. ``parse`` reads documents, ``object_parser`` one object at a time, ``struct_parser`` its maps and
lists, and ``scalar_parser`` the values in them. ``json_schema``, ``crd`` with ``crd_schema``, and
``reference`` render the table; ``wording`` puts a field into words.
"""
