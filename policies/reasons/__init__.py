"""The messages on why a pod cannot be admitted as it is, or what was chosen for it, with what to type."""
