"""Simulated admission: what becomes of the pods, claims and workloads of a manifest, without an API server."""
