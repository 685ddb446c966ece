"""The last step of the builder's stage: what was installed becomes what is shipped.

``python3 finish.py PREFIX BASE PYTHON``: PREFIX is the virtual environment that was installed into, BASE where the file system of the
image's base can be read, PYTHON the interpreter in it. Needs nothing but the standard library.
"""

from __future__ import annotations

import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

COMMANDS = {"berth", "python3"}
"""What is left of bin: the others are commands of dependencies, activation scripts, and other names of the interpreter."""
GENERATED = ("client/api", "client/models", "aio/client/api", "aio/client/models")
"""Of the Kubernetes client: a class for each kind and call, 72 of its 74 MB, loaded when they are first named. Berth calls with its own
connections and takes only credentials from the client (cluster/client/access.py). The packages stay, so that importing them works."""
ROOMS = (
    "analysis", "catalog", "certs", "cli", "cluster", "console", "documents", "kube", "policies", "registration", "server",
    "sources", "telemetry", "webhook",
)  # fmt: skip
LOADED = """
import importlib, pkgutil, sys
import kubernetes.aio.config  # Berth imports it where it reads a kubeconfig
for room in sys.argv[1:]:
    for found in pkgutil.walk_packages(importlib.import_module(room).__path__, room + "."):
        importlib.import_module(found.name)
for module in list(sys.modules.values()):
    print(getattr(module, "__file__", None) or "")
"""
"""Prints the file of every module that Berth's own load."""


def main() -> None:
    prefix, base, python = map(Path, sys.argv[1:])
    (site,) = prefix.glob("lib/python3.*/site-packages")
    standard = python.parent.parent / "lib" / site.parent.name
    prune(prefix, site)
    compile_all(prefix / "pycache", sorted(site.rglob("*.py")), Path("/"))
    compile_all(prefix / "pycache", sorted(base_files(prefix, base, standard)), base)
    point(prefix, python)


def prune(prefix: Path, site: Path) -> None:
    """Takes away commands that nobody calls, and modules that Berth never loads."""
    for command in (prefix / "bin").iterdir():
        if command.name not in COMMANDS:
            command.unlink()
    shutil.rmtree(prefix / "include", ignore_errors=True)
    for folder in GENERATED:
        for module in (site / "kubernetes" / folder).glob("*.py"):
            if module.name != "__init__.py":
                module.unlink()


def base_files(prefix: Path, base: Path, standard: Path) -> set[Path]:
    """The sources of the base's own standard library that Berth loads: images of Python have no bytecode, and would compile 250 modules
    at every start, a second of it."""
    files = subprocess.run([prefix / "bin/python3", "-c", LOADED, *ROOMS], check=True, capture_output=True, text=True).stdout.splitlines()
    ours = Path(py_compile.__file__).parent
    named = {Path(file).relative_to(ours) for file in files if file.startswith(f"{ours}/") and file.endswith(".py")}
    return {base / standard.relative_to("/") / name for name in named if (base / standard.relative_to("/") / name).exists()}


def compile_all(cache: Path, sources: Iterable[Path], root: Path) -> None:
    """Bytecode where PYTHONPYCACHEPREFIX looks for that of ``sources`` as seen from ``root``, without a time in it.

    The hash in it is compared with the source's: of a base that was patched later nothing is run as it was."""
    for source in sources:
        seen = Path("/", source.relative_to(root))
        cached = cache / seen.parent.relative_to("/") / f"{seen.stem}.{sys.implementation.cache_tag}.pyc"
        cached.parent.mkdir(parents=True, exist_ok=True)
        py_compile.compile(str(source), str(cached), str(seen), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def point(prefix: Path, python: Path) -> None:
    """Makes the environment one of the image's interpreter."""
    (prefix / "bin" / "python3").unlink()
    (prefix / "bin" / "python3").symlink_to(python)
    (prefix / "pyvenv.cfg").write_text(f"home = {python.parent}\ninclude-system-site-packages = false\n")


if __name__ == "__main__":
    main()
