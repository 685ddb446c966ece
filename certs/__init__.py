"""Certificates: a small authority, the rules of renewal and rotation, the files on disk, and the TLS context
that serves them while they change.

``authority``, ``chain``, ``rotation`` and ``secret`` are pure: they take the time as an
argument and return values. ``reading`` and ``following`` touch files; ``serving`` holds the live TLS
context, to which ``following`` gives each new pair. Nothing here knows HTTP or policies (``tests/test_layers.py`` holds it),
and key material is in no repr, message or log.
"""
