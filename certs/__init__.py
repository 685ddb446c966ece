"""Certificates: a small authority, when to renew, the files they live in, and the TLS context that serves them.

``authority`` and ``renewal`` are pure: they take the time as an argument and return values. ``files`` reads and
writes one folder; ``serving`` makes the TLS context. Nothing here knows HTTP or policies
(``tests/test_layers.py`` holds it), and key material is in no repr, message or log.
"""
