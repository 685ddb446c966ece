"""Amounts as they stand in fields of Kubernetes' objects and of ours: durations and quantities, each with its grammar. Nothing
here knows of policies or pods."""
