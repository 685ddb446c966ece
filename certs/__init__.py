"""Certificates: a small authority, when to renew, the files they live in, and what serves them while they change.

``authority``, ``names``, ``renewal`` and ``chain`` are pure: they take the time as an argument and return values. ``reading``, ``writing``
and ``files`` touch files; ``serving`` holds the live TLS context, and ``following`` tells it when there is a new pair. Nothing here knows
HTTP or policies (``tests/test_layers.py`` holds it), and key material is in no repr, message or log.
"""
