"""The inputs of subcommands: files, manifests, standard input, a cluster. They are read and checked, nothing
is printed."""
