"""Talking to Kubernetes: the only folder that imports its client. What it learns goes to whoever it is given."""
