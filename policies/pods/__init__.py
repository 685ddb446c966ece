"""The projection of a pod that a decision reads, the author's annotations, and the actor."""
