"""The three kinds of object as a table, and what is made of it: the strict parser, the JSON schema, the reference page.

``definition`` is the one table (``parts`` and ``between_fields`` hold what its rows share); ``shape`` is its vocabulary.
``parse`` reads documents by it (``shape_read``, ``leaf_read``), ``schema`` and ``reference`` write it out.
"""
