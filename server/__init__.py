"""Starlette on uvicorn with bounds on everything a caller may hold; it knows nothing of admission.

A call passes ``listener`` (accept, TLS handshake; it takes one of the ``places``) -> ``protocol`` (bytes, end
of the connection) with its ``deadlines`` -> ``requests`` (llhttp, with ``bodies``) -> ``answers`` (in order)
-> one of the ``routes`` -> an ``http`` answer. ``server`` starts and stops it all; ``limits`` are the bounds,
``load_shedding`` the last of them.
"""
