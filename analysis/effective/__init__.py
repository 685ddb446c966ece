"""The effect of policies on a namespace, shown before anything is created."""
