"""The view of one pod, the projection that a decision reads, the author's annotations, and the actor."""
