"""Rules about how a pod runs, whatever node it is on. Each fills in one part of the pod's spec where its author is
silent (``policies.settings.running``); only ``max_runtime`` also judges."""
