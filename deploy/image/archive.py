"""An OCI archive, as `docker buildx build --output type=oci`, podman and buildah write it: what it says of the image, and its files."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Sizes in bytes."""

    digest: str
    packed: int
    """as a registry keeps it"""
    files: int
    """the files in it, as they are on a disk"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a registry would know it by."""

    digest: str
    """of its manifest"""
    config: dict[str, Any]
    """its configuration, with its history"""
    layers: tuple[Layer, ...]
    """those of the base first"""


def unpack(archive: Path, folder: Path) -> Image:
    """Writes the image's file system into ``folder``. Of an image for several platforms, the first."""
    with tarfile.open(archive) as held:
        digest = _json(held, "index.json")["manifests"][0]["digest"]
        manifest = _json(held, _blob(digest))
        if "manifests" in manifest:
            digest = manifest["manifests"][0]["digest"]
            manifest = _json(held, _blob(digest))
        layers = tuple(_layer(held, layer, folder) for layer in manifest["layers"])
        return Image(digest=digest, config=_json(held, _blob(manifest["config"]["digest"])), layers=layers)


def _layer(held: tarfile.TarFile, described: dict[str, Any], folder: Path) -> Layer:
    with tarfile.open(fileobj=_opened(held, _blob(described["digest"]))) as layer:
        members = layer.getmembers()
        layer.extractall(folder, members, filter="fully_trusted")  # with its owners and modes: it is an image of ours
    return Layer(digest=described["digest"], packed=described["size"], files=sum(member.size for member in members))


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _json(held: tarfile.TarFile, name: str) -> Any:
    return json.load(_opened(held, name))


def _opened(held: tarfile.TarFile, name: str) -> IO[bytes]:
    found = held.extractfile(name)
    assert found is not None, f"{name} is a folder"
    return found
