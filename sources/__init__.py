"""Where the state of a cluster comes from: files, one read of a cluster, or a cluster that is followed."""
