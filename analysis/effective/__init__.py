"""The effect of policies on a namespace, and on one pod in both phases, shown before anything is created."""
