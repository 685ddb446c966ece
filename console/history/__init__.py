"""The screen "History": what was decided lately, as Events and reports of the cluster have it."""
