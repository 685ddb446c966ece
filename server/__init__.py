"""Starlette on uvicorn with bounds on everything a caller may hold; it knows nothing of admission.

A call passes ``listener`` (accept, TLS handshake; it takes one of the ``places``) -> ``connection`` (bytes, end of the connection) with
its ``deadlines`` -> ``request_reader`` (llhttp, with the memory of bodies) -> ``answer_queue`` (in order; parked calls) -> an application
of the ``port``, or the pages of ``routes`` -> an ``http`` answer. ``server`` starts and stops it all; ``limits`` are the bounds,
``load_shedding`` the last of them. ``connection`` and ``server`` are the only contact with uvicorn.
"""
