"""Files of Go modules, in their newest version that the module proxy serves, or of a folder in place of a module."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path


class NoModuleError(Exception):
    """A module could not be had. str() says why."""


@dataclass(frozen=True)
class Module:
    path: str
    """The module path: ``sigs.k8s.io/kueue``."""
    version: str
    """The version; ``folder`` of a folder in place of a module."""
    root: Path
    """A folder, or the zip file that the proxy serves."""

    @cached_property
    def _names(self) -> list[str]:
        """The paths of all files within the module."""
        if self.root.is_dir():
            return sorted(file.relative_to(self.root).as_posix() for file in self.root.rglob("*") if file.is_file())
        with zipfile.ZipFile(self.root) as archive:
            return sorted(name.removeprefix(self._prefix) for name in archive.namelist())

    @property
    def _prefix(self) -> str:
        return f"{self.path}@{self.version}/"

    def texts(self, *patterns: str) -> Iterator[tuple[str, str]]:
        """Yield ``(path, text)`` of the files that match a pattern, where ``*`` matches slashes too. Raises NoModuleError without any."""
        matching = [name for name in self._names if any(fnmatch(name, pattern) for pattern in patterns)]
        if not matching:
            raise NoModuleError(f"{self.path}@{self.version} has no file {' or '.join(patterns)}")
        if self.root.is_dir():
            yield from ((name, (self.root / name).read_text(encoding="utf-8", errors="replace")) for name in matching)
            return
        with zipfile.ZipFile(self.root) as archive:
            yield from ((name, archive.read(self._prefix + name).decode("utf-8", errors="replace")) for name in matching)

    def text(self, pattern: str) -> str:
        """Return the text of all files that match a pattern, one after the other."""
        return "\n".join(text for _, text in self.texts(pattern))


def download(paths: Iterable[str], folders: Mapping[str, Path]) -> tuple[dict[str, Module], dict[str, str]]:
    """Return the modules by path, and of those that could not be had the reason.

    The proxy is the one that GOPROXY names. A module whose ``go`` directive is newer than this Go is had all the same: nothing is built.
    """
    wanted = sorted(set(paths))
    modules = {path: Module(path, "folder", folders[path]) for path in wanted if path in folders}
    rest = [path for path in wanted if path not in modules]
    if not rest:
        return modules, {}
    if shutil.which("go") is None:
        raise NoModuleError("Go is not installed: it downloads the modules that the catalog is compared with")
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = ["go", "mod", "download", "-json", *(f"{path}@latest" for path in rest)]
        environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GO111MODULE": "on"}
        answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    for item in _json_values(answer.stdout):
        path = str(item["Path"])
        if "Zip" in item:
            modules[path] = Module(path, str(item["Version"]), Path(str(item["Zip"])))
        else:
            failed[path] = str(item.get("Error", "not served")).strip().splitlines()[0]
    failed |= {path: answer.stderr.strip() or "no answer" for path in rest if path not in modules and path not in failed}
    return modules, failed


def _json_values(text: str) -> Iterator[dict[str, object]]:
    """Yield the JSON values of a text in which they stand one after the other."""
    decoder, place = json.JSONDecoder(), 0
    while (place := len(text) - len(text[place:].lstrip())) < len(text):
        value, place = decoder.raw_decode(text, place)
        yield value
