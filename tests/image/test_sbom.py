"""The bill of materials of the image, and the licences in it."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from tests.image.conftest import Built
from tests.support.counts import only_in_prove

ROOT = Path(__file__).parents[2]
LOCKED = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ \\]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
ALLOWED = {
    "Apache-2.0", "Apache Software License", "BSD License", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT License", "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)", "MPL-2.0", "PSF-2.0", "Python Software Foundation License",
}  # fmt: skip
"""Permissive licences, and those whose copyleft ends at the file; of all of them the Open Source Initiative approves."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@only_in_prove
def test_the_bill_names_every_package_with_its_version(bill: dict[str, Any]) -> None:
    """Those of requirements.txt, Berth itself, and no other. ``make test`` has their licences, below."""
    python = {normal(one["name"]): one["version"] for one in bill["components"] if not one.get("purl", "").startswith("pkg:deb/")}
    version = python.pop("gpu-berth")
    assert python == {normal(name): version for name, version in LOCKED.items()}
    assert bill["metadata"]["component"]["version"] == version


@only_in_prove
def test_the_bill_names_the_base_s_packages(bill: dict[str, Any]) -> None:
    """Those of Debian, by their package URLs. ``make test`` has the image's contents (``test_contents``)."""
    names = {one["name"] for one in bill["components"] if one.get("purl", "").startswith("pkg:deb/debian/")}
    assert {"base-files", "libc6", "libssl3t64", "python3.13-minimal"} <= names


@only_in_prove
def test_the_bill_is_of_this_image(built: Built, bill: dict[str, Any]) -> None:
    """By the digest that a registry knows it by. ``make test`` has the image's contents (``test_contents``)."""
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": built.image.digest.removeprefix("sha256:")}]


@pytest.mark.parametrize("name", sorted(LOCKED))
def test_a_package_may_be_shipped(name: str) -> None:
    """Its licence is one that lets anybody use Berth for anything; one that is not in the list is read, and then put there or not."""
    assert licences(name) <= ALLOWED
    assert licences(name) != set()


def licences(name: str) -> set[str]:
    """As the package declares them: its expression, else its classifiers, else its licence in words."""
    declared = distribution(name).metadata
    for expression in declared.get_all("License-Expression", []):
        return {term for term in re.split(r"[()\s]+|\b(?:AND|OR|WITH)\b", expression) if term}
    classifiers = {line.rpartition(" :: ")[2] for line in declared.get_all("Classifier", []) if line.startswith("License :: ")}
    return classifiers or set(declared.get_all("License", []))
