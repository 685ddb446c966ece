"""Queue systems: which there are, in which queue a pod is, which one a default gives it, and what is required of it. Nothing here
edits anything: ``policies.rules.queues`` does, and ``webhook.admission`` for workloads."""
