"""Subcommands that answer a question and change nothing, one file each: what policies make of a manifest, of a namespace,
of what runs."""
