"""The process that answers the API server, and the process of the audit.

A request passes ``server`` (bytes, TLS, deadlines, limits) -> ``admission`` (a review, its decision, the
answer) -> ``telemetry`` (metrics and the log). ``reload`` activates changed policies and facts, from files or
from the cluster. ``health`` answers on the second port. ``serve`` composes the process according to
``settings``.
"""
