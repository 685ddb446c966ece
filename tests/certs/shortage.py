"""A start without room or descriptors, and one on the same folder when there are some: ``python -m tests.certs.shortage FOLDER KIND``.

KIND is ``disk``, where FOLDER is a file system of 20 KiB, of which one page is left; ``size``, where the system refuses files over 300
bytes (a key has 241, a certificate some 600); or ``descriptors``, where it opens no more files. Prints what was said, what was left, what
was said then, and what was made.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.certs.starts import start

SIZE = 300


@contextmanager
def short_of(kind: str, folder: Path) -> Iterator[None]:
    if kind == "disk":
        (folder / "other").write_bytes(b"x" * 16 * 1024)
        yield
        (folder / "other").unlink()
    else:
        limit, value = (resource.RLIMIT_FSIZE, SIZE) if kind == "size" else (resource.RLIMIT_NOFILE, descriptors())
        soft, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (value, hard))
        yield
        resource.setrlimit(limit, (soft, hard))


def descriptors() -> int:
    """How many are open, the lowest numbers first."""
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    return free


def main(folder: Path, kind: str) -> None:
    with short_of(kind, folder):
        first = start(str(folder), ["localhost"])
    left = sorted(path.name for path in folder.iterdir())
    second = start(str(folder), ["localhost"])
    print(json.dumps({"first": first, "left": left, "second": second, "made": sorted(path.name for path in folder.iterdir())}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
