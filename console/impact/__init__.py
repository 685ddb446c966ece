"""The screen "Impact": what each policy would do to the pods of each namespace, and, behind a number, to which."""
