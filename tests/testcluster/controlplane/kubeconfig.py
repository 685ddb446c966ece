"""Files by which a caller finds an API server, and is known to it."""

from __future__ import annotations

import os
from pathlib import Path

import yaml


def write(file: Path, server: str, ca: Path, token: str, namespace: str = "default") -> Path:
    """For whoever has this token, in this namespace unless another is named; the file itself."""
    text = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "berth", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "caller", "user": {"token": token}}],
        "contexts": [{"name": "berth", "context": {"cluster": "berth", "user": "caller", "namespace": namespace}}],
        "current-context": "berth",
    }
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
        yaml.safe_dump(text, written)
    return file
