"""Reviews of workloads for their queues: the label that a default gives, and what is required. Pods are not read here:
``policies.rules.queues`` judges theirs."""
