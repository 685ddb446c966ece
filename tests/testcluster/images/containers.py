"""Containers of an unpacked image, run by runc as a strict cluster would: its own user, a read-only root, no capability, no new privilege.

They share the machine's network, and nothing else of it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testcluster.images.store import needs

FLAGS = ["nosuid", "nodev", "noexec"]
RUN_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """An image that can be run."""

    folder: Path
    """its file system"""
    config: dict[str, Any]
    """what the image says of how it is run"""


def ran(
    root: Root, *arguments: str, entrypoint: Sequence[str] | None = None, given: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The image's command with ``arguments``, to its end. ``given``: a folder that it sees as /given."""
    with started(root, *arguments, entrypoint=entrypoint, given=given) as process:
        output, errors = process.communicate(timeout=RUN_SECONDS)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


@contextmanager
def started(
    root: Root, *arguments: str, entrypoint: Sequence[str] | None = None, given: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """It runs within the block, and nothing is left of it. A signal to runc is one to its first process."""
    needs("runc")
    name = f"berth-{uuid.uuid4().hex[:12]}"
    with tempfile.TemporaryDirectory() as folder:
        command = [*(root.config["Entrypoint"] if entrypoint is None else entrypoint), *arguments]
        Path(folder, "config.json").write_text(json.dumps(_specification(root, command, given)))
        runc = ["runc", "--root", f"{folder}/state"]
        process = subprocess.Popen(
            [*runc, "run", "--bundle", folder, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            yield process
        finally:
            subprocess.run([*runc, "delete", "--force", name], capture_output=True, check=False)
            process.kill()
            process.communicate()


def _specification(root: Root, command: Sequence[str], given: Path | None) -> dict[str, Any]:
    """The OCI runtime's, https://github.com/opencontainers/runtime-spec."""
    uid, gid = map(int, root.config["User"].split(":"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc", "options": FLAGS},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": [*FLAGS, "mode=1777", "size=16m"]},
    ]
    if given is not None:
        mounts.append({"destination": "/given", "type": "bind", "source": str(given), "options": ["rbind", "ro", *FLAGS]})
    return {
        "ociVersion": "1.0.2",
        "root": {"path": str(root.folder), "readonly": True},
        "process": {
            "user": {"uid": uid, "gid": gid},
            "args": list(command),
            "env": root.config["Env"],
            "cwd": root.config["WorkingDir"],
            "noNewPrivileges": True,
            "capabilities": {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")},
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": most, "soft": min(most, 1024)}],
        },
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
    }
