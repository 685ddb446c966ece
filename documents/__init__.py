"""Read YAML and JSON files strictly, and report errors with path and line; it knows no kinds of object but
policies and catalogs."""
