"""The bill of materials of an image, as CycloneDX JSON: its Python packages, and the Debian packages of its base.

    .venv/sbom/bin/python -m deploy.image.sbom ARCHIVE FILE      ARCHIVE: an OCI archive of the image

Python packages are listed by cyclonedx-py from what is installed in the image, with their licences. The others are read where
distroless images and Debian keep them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from deploy.image.archive import unpack


def main() -> int:
    archive, target = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        image = unpack(archive, root)
        bill = python_packages(root, Path(folder))
        bill["components"] += [component(package) for package in debian_packages(root)]
    version = image.config["config"]["Labels"]["org.opencontainers.image.version"]
    bill["metadata"]["component"] = {
        "type": "container",
        "bom-ref": "image",
        "name": "berth",
        "version": version,
        "hashes": [_hash(image.digest)],
    }
    text = json.dumps(bill, indent=2) + "\n"
    if (wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        sys.exit(f"{target} is not valid CycloneDX 1.6: {wrong}")
    target.write_text(text)
    print(f"{target}: {len(bill['components'])} components")
    return 0


def python_packages(root: Path, folder: Path) -> dict[str, Any]:
    """A bill of the packages that are installed in the image: cyclonedx-py sees them through an environment that has no other."""
    (site,) = root.glob("opt/berth/lib/python3.*/site-packages")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (own,) = environment.glob("lib/python3.*/site-packages")
    (own / "image.pth").write_text(f"{site}\n")
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--spec-version", "1.6", str(environment)]
    written = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"}).stdout
    bill: dict[str, Any] = json.loads(written)
    return bill


def debian_packages(root: Path) -> Iterator[Message]:
    """Their control files: one for each package in a distroless image, all in one elsewhere; none where the base is not Debian."""
    status = root / "var/lib/dpkg/status"
    listed = [*sorted((root / "var/lib/dpkg/status.d").glob("*")), *([status] if status.exists() else [])]
    for text in (text for file in listed if file.suffix != ".md5sums" for text in file.read_text().split("\n\n")):
        control = Parser().parsestr(text.strip())
        if control["Package"]:
            yield control


def component(package: Message) -> dict[str, object]:
    """By its package URL, as https://github.com/package-url/purl-spec has it."""
    name, version, architecture = (str(package[field]) for field in ("Package", "Version", "Architecture"))
    purl = f"pkg:deb/debian/{quote(name, safe='')}@{quote(version, safe='')}?arch={architecture}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest.removeprefix("sha256:")}


if __name__ == "__main__":
    sys.exit(main())
