"""The questions about a cluster that are answered by simulating decisions: what policies do to its pods, why a pod cannot run, what
repairs it. Pure, like ``policies``: nothing here reads a file, a clock or an API server.
"""
