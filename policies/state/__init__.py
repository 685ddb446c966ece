"""The snapshot: everything known at one moment, and how the next one is built from it.

``updater`` takes what has changed: Berth's own ``objects``, and ``facts`` about the cluster. ``detected_platforms`` counts the
platforms of nodes and NodePools; ``compilation`` compiles the policies in force, of which ``own_policies`` limits those of each
namespace. The ``snapshot`` holds all of it, with the ``vocabulary`` of labels and the ``lookalikes`` of
accelerators.
"""
