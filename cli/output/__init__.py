"""The output of subcommands: reports, manifests and differences, as text, JSON or YAML."""
