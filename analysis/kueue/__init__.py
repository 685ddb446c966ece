"""Workloads in Kueue: whether a queue has a place for them (its flavors, as Kueue matches them), and what they wait for."""
