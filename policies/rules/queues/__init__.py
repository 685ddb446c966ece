"""Rules about the queue in which a pod waits: the one that a default gives it, and those that are required
(``policies.planning.queues``)."""
