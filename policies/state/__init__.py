"""The snapshot: everything known at one moment, and how the next one is built from it.

``updater`` takes what has changed: Berth's own ``objects`` and ``cluster_facts`` (both read with
``untyped``). ``platform_detection`` derives platforms from nodes and NodePools, ``detected_platforms`` counts
them; ``compilation`` compiles the policies in force, of which ``own_policies`` limits those of each
namespace. The ``snapshot`` holds all of it, with the ``vocabulary`` of labels and the ``lookalikes`` of
accelerators.
"""
