"""Values that stand in fields of Kubernetes' objects and of ours, each with its grammar: durations, quantities and
label selectors. Nothing here knows of policies or pods."""
