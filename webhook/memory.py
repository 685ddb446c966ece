"""Settings of the C library, so that freed memory goes back to the system.

By default glibc keeps most of it. Once a large block was freed, others of that size come from the heap too (M_MMAP_THRESHOLD in
mallopt(3)), where small blocks beside them keep the pages. A replica that has listed 1,200 nodes holds 9 MB that way.
Other C libraries have neither function, and nothing is done there.
"""

from __future__ import annotations

import contextlib
import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt (malloc.h)."""
_LARGE = 1 << 20
"""Bytes of a block that gets pages of its own. It is more than the 256 KiB into which TLS reads: else each call costs five page faults."""
_UNUSED = 2 << 20
"""Bytes that may be free at the end of the heap."""


def return_large_blocks() -> None:
    """Have large blocks go back to the system when they are freed. Call it before the process allocates any."""
    with contextlib.suppress(OSError, AttributeError):
        for parameter, value in ((_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _UNUSED)):
            ctypes.CDLL(None).mallopt(parameter, value)


def trim() -> None:
    """Give all free pages of the heap back to the system, which takes some milliseconds."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))
