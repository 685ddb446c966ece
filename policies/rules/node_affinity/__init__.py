"""Node affinity: a pod runs only on nodes that policies allow. ``rule`` has its functions; ``pinned`` checks pods that name their node;
``denials``, with ``minimal_conflict``, and ``remarks`` have the reasons."""

NAME = "node_affinity"
"""The rule's name, also of ``policies.rules.no_place`` and ``policies.rules.scale_from_zero``: all say where a pod may run."""
