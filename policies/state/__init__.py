"""The snapshot: everything known at one moment, and how the next one is built from it.

``updater`` takes what has changed: Berth's own ``objects``, and ``facts`` about the cluster, of which it counts the platforms.
``compilation`` compiles the policies in force, as many as may be of each namespace. The ``snapshot`` holds all of it, with the
vocabulary of labels and the names that look like accelerators.
"""
