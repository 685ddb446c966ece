"""Node affinity: a pod runs only on nodes that policies allow (``rule``), and what is said of it: denials, remarks, and pods that are
pinned to a node."""
