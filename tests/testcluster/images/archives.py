"""OCI archives of the images that the test cluster runs: Berth's, by the Dockerfile that everybody builds it by, and the pause image.

Each is kept by the hash of what goes into it. Nothing is fetched but Debian and Python packages.

    python -m tests.testcluster.images.archives      builds what is not there, and prints where it is
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cli import VERSION
from tests.testcluster.go_build import BuildFailed, Progress
from tests.testcluster.images import bases
from tests.testcluster.images.store import CACHE, NoImage, Store, empty, needs, run

ROOT = Path(__file__).parents[3]
BERTH = "localhost/berth:test"
PAUSE = "localhost/pause:1"
PAUSE_SOURCE = Path(__file__).with_name("pause.c")
PAUSE_FILE = 'FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n'
TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")
"""Authorities of this machine: a proxy's may be among them."""
PLACES = ("index-url", "extra-index-url", "trusted-host", "timeout", "default-timeout")
"""Of pip's settings"""


def berth(progress: Progress = lambda _: None) -> Path:
    """Of ``localhost/berth:test``. Raises NoImage and BuildFailed."""
    archive = CACHE / f"berth-{key()}.tar"
    if not archive.exists():
        needs("buildah", "mmdebstrap")
        builds, runs = bases.archive(bases.BUILDS, progress), bases.archive(bases.RUNS, progress)
        with empty(progress) as store:
            if not archive.exists():
                progress("building Berth's image ...")
                build(store, builds, runs)
                store.export(BERTH, archive)
    return archive


def pause(progress: Progress = lambda _: None) -> Path:
    """Of ``localhost/pause:1``. Raises NoImage and BuildFailed."""
    archive = CACHE / f"pause-{_digest([PAUSE_SOURCE], PAUSE_FILE)}.tar"
    if not archive.exists():
        needs("buildah", "gcc")
        with empty(progress) as store, tempfile.TemporaryDirectory() as context:
            progress("building the pause image ...")
            run("gcc", "-static", "-Os", "-s", "-o", f"{context}/pause", PAUSE_SOURCE)
            Path(context, "Dockerfile").write_text(PAUSE_FILE)
            store.buildah("bud", "--quiet", "--timestamp", "0", "--tag", PAUSE, context)
            store.export(PAUSE, archive)
    return archive


def key() -> str:
    """Of everything that goes into Berth's image."""
    text = "".join([bases.BUILDS.key, bases.RUNS.key, VERSION])
    return _digest([ROOT / "Dockerfile", ROOT / ".dockerignore", *context()], text)


def context() -> list[Path]:
    """The files that .dockerignore lets through."""
    named = [ROOT / line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    found = [path for name in named for path in ([name] if name.is_file() else name.rglob("*"))]
    return [path for path in found if path.is_file() and path.suffix != ".pyc"]


def build(store: Store, builds: Path, runs: Path) -> None:
    """Builds it in ``store``, on these two bases."""
    store.take(builds, "localhost/builds:1")
    store.take(runs, "localhost/runs:1")
    arguments = {"BUILDER": "localhost/builds:1", "BASE": "localhost/runs:1", "VERSION": VERSION}
    given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        secrets = _secrets(Path(folder))
        way = ("--isolation", "chroot", "--network", "host", "--pull-never", "--timestamp", "0")
        store.buildah("bud", "--quiet", *way, *given, *secrets, "--tag", BERTH, ROOT)


def _secrets(folder: Path) -> list[str]:
    """Where this machine's pip gets packages from, and whom it trusts, for the builder's stage alone."""
    settings = _settings()
    if TRUSTED.exists():
        settings["cert"] = "/run/secrets/ca"
    (folder / "pip.conf").write_text("".join(["[global]\n", *(f"{name} = {value}\n" for name, value in settings.items())]))
    given = ["--secret", f"id=pip,src={folder / 'pip.conf'}"]
    return [*given, "--secret", f"id=ca,src={TRUSTED}"] if TRUSTED.exists() else given


def _settings() -> dict[str, str]:
    """Those of pip's settings that say where packages are and how long to wait for them; its environment goes before its files."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^[\w:]+\.([\w-]+)=(.+)$", listed, re.MULTILINE)
    return {name: ast.literal_eval(value) for name, value in reversed(found) if name in PLACES}


def _digest(paths: Iterable[Path], text: str = "") -> str:
    digest = hashlib.sha256(text.encode())
    for path in sorted(paths):
        digest.update(f"{path.relative_to(ROOT)} {path.stat().st_mode & 0o777:o}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def main() -> int:
    """Builds what is not there. 0 also where it can't: tests then say what they miss."""
    try:
        for image in (berth, pause):
            print(image(progress=lambda text: print(text, flush=True)))
    except NoImage as error:
        print(f"no images for tests: {error}", file=sys.stderr)
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
