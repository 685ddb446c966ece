"""Queue systems: which there are, in which queue a pod is, which one a default gives it, what is required of it, and whether a
queue has a place for a workload. Nothing here edits anything: ``policies.rules.queues`` does, and ``webhook.admission`` for workloads."""
