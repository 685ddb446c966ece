"""Shapes of documents, and the one parser of mappings: policies, catalog files and policy cases are tables of these shapes.

``scalars`` has the shapes of single values, each with its parser; ``structs`` those of lists and maps, and their fields.
``struct_parser`` parses a value by a shape and collects every mistake with its path.
"""
