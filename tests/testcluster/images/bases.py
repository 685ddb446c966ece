"""What images are built on, where no registry can be reached: root file systems made of Debian packages, as distroless images are.

Packages are unpacked and not configured, so neither has what the other needs: the base that runs has no shell, no pip and no package
lists, the one that builds has what `python3 -m venv` and pip need. Both are of the release that Dockerfile's default base is of.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.testcluster import go_build
from tests.testcluster.go_build import BuildFailed, Progress
from tests.testcluster.images.store import CACHE, NoImage, needs, run

SUITE = "trixie"
UNNEEDED = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")
STATUS = """
mkdir -p "$1/var/lib/dpkg/status.d"
for package in "$1"/var/cache/apt/archives/*.deb; do
  dpkg-deb --field "$package" > "$1/var/lib/dpkg/status.d/$(dpkg-deb --field "$package" Package)"
done
"""
"""Which packages are in it, written where distroless images have it, for whoever lists what an image is made of."""
TRUST = 'cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1"/etc/ssl/certs/ca-certificates.crt'
"""What ca-certificates does when it is configured."""
SHED = (
    'rm -rf "$1"/usr/bin/dpkg* "$1"/usr/bin/debconf* "$1"/usr/bin/tar "$1"/usr/bin/*awk "$1"/usr/sbin "$1"/usr/share/perl5 "$1"/var/lib/apt'
)
"""Programs that packages want for being configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A root file system."""

    name: str
    packages: tuple[str, ...]
    hooks: tuple[str, ...]
    """shell commands, with the root as $1"""

    @property
    def key(self) -> str:
        return hashlib.sha256(repr((SUITE, self, UNNEEDED)).encode()).hexdigest()[:16]


RUNS = Recipe(name="runs", packages=("base-files", "netbase", "python3", "tzdata"), hooks=(STATUS, SHED))
BUILDS = Recipe(name="builds", packages=("base-files", "ca-certificates", "coreutils", "dash", "libc-bin", "python3-venv"), hooks=(TRUST,))


def archive(recipe: Recipe, progress: Progress) -> Path:
    """A tar file of it, from the cache or made in half a minute. Raises NoImage and BuildFailed."""
    kept = CACHE / f"{recipe.name}-{recipe.key}.tar"
    if not kept.exists():
        needs("mmdebstrap")
        with go_build.alone(kept, progress):
            if not kept.exists():
                progress(f"building a base of Debian packages that {recipe.name} ...")
                _make(recipe, kept)
    return kept


def _make(recipe: Recipe, kept: Path) -> None:
    beside = kept.with_name(f".{os.getpid()}.{kept.name}")
    options = [f"--include={','.join(recipe.packages)}", *(f"--dpkgopt=path-exclude={pattern}" for pattern in UNNEEDED)]
    try:
        run("mmdebstrap", "--quiet", "--variant=extract", *options, *(f"--extract-hook={hook}" for hook in recipe.hooks), SUITE, beside)
        beside.rename(kept)
    except BuildFailed as error:  # of Debian's archive or of this machine, and nothing of ours
        raise NoImage(f"no base is made of Debian packages here, and images stand on one: {error}") from None
    finally:
        beside.unlink(missing_ok=True)
