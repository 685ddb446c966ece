"""Node affinity: a pod runs only on nodes that policies allow. ``rule`` has its functions; ``pinned`` checks pods that name their node;
``denials`` and ``remarks`` have the reasons."""

NAME = "node_affinity"
"""The rule's name, also of ``policies.rules.no_place``: both say where a pod may run."""
