"""Workloads in queues: what defaults write on them, what is required of them, and the verdict on both."""
