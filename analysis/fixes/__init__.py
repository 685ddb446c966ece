"""The smallest change of a pod by which a place of the cluster takes it. Pure; nothing is applied to a cluster.

A pod that policies deny is first changed so that they admit it, by the fixes of the violations (``admitted``).

A change is a set of steps, each in one word of the author's: a toleration more, another value of a label or none, a
resource under another name, a smaller amount. ``steps`` has what could fix each blocker, ``smallest`` finds the fewest
steps that no policy denies.
"""
