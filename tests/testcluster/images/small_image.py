"""An image of one program in Go: what tests of the rig itself run in containers, built in a second."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.testcluster import go_build
from tests.testcluster.images.store import CACHE, empty, needs

SOURCE = Path(__file__).with_name("answering")
ANSWERING = "localhost/answering:1"
FILE = 'FROM scratch\nCOPY answering /answering\nUSER 65535:65535\nENTRYPOINT ["/answering"]\n'


def answering() -> Path:
    """An OCI archive of it. Raises NoGo, NoImage and BuildFailed."""
    program = go_build.built(SOURCE, ".", "answering")
    archive = CACHE / f"answering-{program.parent.name}.tar"
    if not archive.exists():
        needs("buildah")
        with empty() as store, tempfile.TemporaryDirectory() as context:
            shutil.copy(program, context)
            Path(context, "Dockerfile").write_text(FILE)
            store.buildah("bud", "--quiet", "--timestamp", "0", "--tag", ANSWERING, context)
            store.export(ANSWERING, archive)
    return archive
