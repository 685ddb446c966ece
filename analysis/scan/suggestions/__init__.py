"""Policies that fit a cluster as it was seen: each in mode Audit, with what it would do to the pods that exist,
counted by the code that admits pods. A file for each kind of policy; ``written`` puts them together."""
